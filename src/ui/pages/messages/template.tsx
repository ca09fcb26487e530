import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../../api/client.ts";
import { type Resource, useResource } from "../../api/resource.ts";
import type { Page, Template } from "../../api/types.ts";
import { Field, type FieldValue, SelectField, TextArea, withChosen } from "../../controls/form.tsx";
import { Problem } from "../../controls/problem.tsx";
import { can } from "../../state/session.ts";
import { fieldOf, parseData, withField } from "../../words/sample-data.ts";

/** Templates that the window offers. The one that a draft names is always among them. */
export const OFFERED = 100;
/** Variables that have a field each. The rest is in the JSON. */
const MAX_FIELDS = 30;

/** Returns the newest templates for forms that offer them. */
export function useTemplates(): Resource<Page<Template>> {
  return useResource("templates to send", () => get<Page<Template>>("/v1/templates", { limit: OFFERED }));
}

interface ChoiceProps {
  templateId: FieldValue;
  label?: string;
  /** The field's name in the API. */
  name?: string;
}

/** Chooses the template that makes the body. Nothing if the project has none. */
export function TemplateChoice(props: ChoiceProps) {
  return can("templates:read") ? <Choice {...props} /> : null;
}

function Choice({ templateId, label = "Template", name = "templateId" }: ChoiceProps) {
  const list = useTemplates();
  const templates = list.value.value?.data ?? [];
  if (list.error.value !== null) return <Problem error={list.error.value} onRetry={list.reload} />;
  if (templates.length === 0 && templateId.value === "") return null;
  const known = templates.map((template) => ({ value: template.id, text: template.name }));
  return (
    <SelectField
      label={label}
      name={name}
      value={templateId}
      options={[{ value: "", text: "None" }, ...withChosen(known, templateId.value)]}
    />
  );
}

/** The values of a template's variables, one field each or all as JSON. */
export function TemplateData({ templateId, data }: { templateId: string; data: FieldValue }) {
  const template = useResource(`template ${templateId}`, () =>
    get<Template>(`/v1/templates/${encodeURIComponent(templateId)}`),
  );
  const asJson = useSignal(false);
  const variables = template.value.value?.variables ?? [];
  const isObject = parseData(data.value) !== null;
  useEffect(() => {
    if (variables.length > MAX_FIELDS) asJson.value = true;
  }, [variables.length > MAX_FIELDS]);
  return (
    <>
      <Problem error={template.error.value} onRetry={template.reload} />
      <fieldset class="segments">
        <legend class="hidden">Data of the template</legend>
        <button
          type="button"
          aria-pressed={!asJson.value}
          disabled={!isObject}
          onClick={() => (asJson.value = false)}
        >
          Fields
        </button>
        <button type="button" aria-pressed={asJson.value} onClick={() => (asJson.value = true)}>
          JSON
        </button>
      </fieldset>
      {asJson.value ? (
        <TextArea labelHidden label="Data as JSON" name="data" value={data} rows={10} code />
      ) : variables.length === 0 ? (
        <p class="quiet">This template has no variables.</p>
      ) : (
        variables.slice(0, MAX_FIELDS).map((path) => <DataField key={path} path={path} data={data} />)
      )}
      {isObject ? null : <p class="field-error">The data is no JSON object.</p>}
    </>
  );
}

function DataField({ path, data }: { path: string; data: FieldValue }) {
  return (
    <Field label={path} name={`data.${path}`}>
      {(attributes) => (
        <input
          {...attributes}
          type="text"
          autoComplete="off"
          value={fieldOf(data.value, path)}
          onInput={(event) => {
            data.value = withField(data.value, path, event.currentTarget.value);
          }}
        />
      )}
    </Field>
  );
}
