import { useSignal } from "@preact/signals";
import { now } from "../../browser/clock.ts";
import { Tabs } from "../../components/tabs.tsx";
import {
  type FieldValue,
  fieldValue,
  SelectField,
  TextArea,
  TextField,
  withChosen,
} from "../../controls/form.tsx";
import { useAudience, useSegments } from "../../state/audience.ts";
import { localField } from "../../words/time.ts";
import { TemplateChoice } from "../messages/template.tsx";
import { AbFields } from "./ab-fields.tsx";
import type { Values } from "./values.ts";

interface FieldsProps {
  values: Values;
  set: (changes: Partial<Values>) => void;
}

/** The fields of a draft. */
export function Fields({ values, set }: FieldsProps) {
  const topics = useAudience().value.value?.topics ?? [];
  const segments = useSegments().value.value ?? [];
  const field = (name: keyof Values) => ({
    name,
    value: fieldValue(
      () => values[name],
      (next) => set({ [name]: next }),
    ),
  });
  const isOwn = values.templateId === "";
  return (
    <>
      <TextField label="Name" {...field("name")} />
      <div class="field-pair">
        <SelectField
          label="To"
          {...field("segmentId")}
          options={[{ value: "", text: "All contacts" }, ...named(segments, values.segmentId)]}
        />
        <SelectField label="Topic" {...field("topicId")} options={named(topics, values.topicId)} />
      </div>
      <div class="field-pair">
        <TextField label="From" {...field("from")} placeholder="Acme <news@example.com>" />
        <TextField label="Reply to" {...field("replyTo")} placeholder="Same as From" />
      </div>
      <TemplateChoice templateId={field("templateId").value} />
      <TextField
        label="Subject"
        {...field("subject")}
        placeholder="Hello {{ contact.firstName }}"
        hint={isOwn ? undefined : "Empty: the template's."}
      />
      <AbFields values={values} fieldOf={(name) => field(name).value} />
      {isOwn ? <Bodies field={field} /> : null}
      <div class="field-pair">
        <TextField
          label="Send at"
          type="datetime-local"
          min={localField(now())}
          {...field("scheduledAt")}
          hint="Your time zone. Empty: at once."
        />
        <TextField
          label="Messages an hour"
          type="number"
          min="1"
          {...field("ratePerHour")}
          hint="At most. Empty: no limit."
        />
      </div>
    </>
  );
}

interface BodiesProps {
  field: (name: "html" | "text") => { name: string; value: FieldValue };
}

/** The html and the text. */
function Bodies({ field }: BodiesProps) {
  const tab = useSignal<"html" | "text">(field("html").value.value === "" ? "text" : "html");
  return (
    <Tabs
      label="Parts of the letter"
      tabs={[
        { id: "html", label: "HTML" },
        { id: "text", label: "Text" },
      ]}
      selected={tab.value}
      onSelect={(id) => (tab.value = id === "html" ? "html" : "text")}
    >
      <TextArea
        key={tab.value}
        label={tab.value === "html" ? "HTML" : "Text"}
        labelHidden
        rows={16}
        code={tab.value === "html"}
        {...field(tab.value)}
        hint="Use {{ contact.firstName }}, {{ contact.properties.name }}, {{ postalAddress }} and {{ unsubscribeUrl }}."
      />
    </Tabs>
  );
}

function named(records: readonly { id: string; name: string }[], chosen: string) {
  const known = records.map(({ id, name }) => ({ value: id, text: name }));
  return withChosen(known, chosen);
}
