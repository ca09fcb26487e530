import { type Signal, useSignal } from "@preact/signals";
import { patch, post } from "../../api/client.ts";
import type { Project } from "../../api/types.ts";
import { SelectField, TextArea, TextField } from "../../controls/form.tsx";
import { FormDialog, type MakerProps } from "../../controls/form-dialog.tsx";
import { useLevels } from "./project.tsx";

interface Values {
  name: Signal<string>;
  externalId: Signal<string>;
  /** Empty: the default of the service. */
  plan: Signal<string>;
  trustTier: Signal<string>;
  dailyQuota: Signal<string>;
  /** true, false or auto. Empty: the default of the service. */
  opens: Signal<string>;
  clicks: Signal<string>;
  /** Empty: broadcasts need none. */
  postalAddress: Signal<string>;
}

function useValues(project: Project | null): Values {
  return {
    name: useSignal(project?.name ?? ""),
    externalId: useSignal(project?.externalId ?? ""),
    plan: useSignal(project?.plan ?? ""),
    trustTier: useSignal(project?.trustTier ?? ""),
    dailyQuota: useSignal(project?.dailyQuota?.toString() ?? ""),
    opens: useSignal(project?.tracking.opens.toString() ?? ""),
    clicks: useSignal(project?.tracking.clicks.toString() ?? ""),
    postalAddress: useSignal(project?.postalAddress ?? ""),
  };
}

/** Returns the fields as the API takes them. Empty choices are left out. */
function bodyOf(values: Values) {
  const { name, externalId, plan, trustTier, dailyQuota, opens, clicks, postalAddress } = values;
  const chosen = Object.entries({ externalId, plan, trustTier }).flatMap(([field, { value }]) =>
    value.trim() === "" ? [] : [[field, value.trim()]],
  );
  return {
    name: name.value.trim(),
    ...Object.fromEntries(chosen),
    dailyQuota: dailyQuota.value.trim() === "" ? null : Number(dailyQuota.value),
    postalAddress: postalAddress.value.trim() || null,
    tracking: {
      ...(opens.value === "" ? {} : { opens: opens.value === "auto" ? opens.value : opens.value === "true" }),
      ...(clicks.value === "" ? {} : { clicks: clicks.value === "true" }),
    },
  };
}

/** Makes a project. */
export function NewProject({ onClose, onCreated }: MakerProps<Project>) {
  const values = useValues(null);
  const create = async () => onCreated(await post<Project>("/v1/senders", bodyOf(values), { account: true }));
  return (
    <FormDialog title="Create a project" verb="Create project" onSubmit={create} onClose={onClose}>
      <Fields values={values} fresh />
    </FormDialog>
  );
}

interface EditProps {
  project: Project;
  onClose: () => void;
  onSaved: (project: Project) => void;
}

/** Changes a project. */
export function EditProject({ project, onClose, onSaved }: EditProps) {
  const values = useValues(project);
  const save = async () => {
    const path = `/v1/senders/${encodeURIComponent(project.id)}`;
    onSaved(await patch<Project>(path, bodyOf(values), { account: true }));
    onClose();
  };
  return (
    <FormDialog title={`Edit ${project.name}`} verb="Save project" onSubmit={save} onClose={onClose}>
      <Fields values={values} />
    </FormDialog>
  );
}

const OPENS = [
  { value: "true", text: "Always" },
  { value: "auto", text: "In html with enough text" },
  { value: "false", text: "Never" },
];

const CLICKS = OPENS.filter(({ value }) => value !== "auto");

function Fields({ values, fresh = false }: { values: Values; fresh?: boolean }) {
  const levels = useLevels().value.value;
  const fallback = fresh ? [{ value: "", text: "default" }] : [];
  const options = (names: readonly string[], { value }: Signal<string>) => [
    ...fallback,
    ...[...new Set([...names, value])]
      .filter((name) => name !== "")
      .map((name) => ({ value: name, text: name })),
  ];
  return (
    <>
      <TextField label="Name" name="name" value={values.name} autoFocus />
      <TextField
        label="External id"
        name="externalId"
        value={values.externalId}
        code
        placeholder={fresh ? "customer-42" : ""}
        hint={
          fresh
            ? "Names the project in requests. Empty: it is made from the name."
            : "Names the project in requests. Programs that use the old one are refused after a change."
        }
      />
      <div class="field-pair">
        <SelectField
          label="Plan"
          name="plan"
          value={values.plan}
          options={options(levels?.plans ?? [], values.plan)}
        />
        <SelectField
          label="Trust tier"
          name="trustTier"
          value={values.trustTier}
          options={options(levels?.tiers ?? [], values.trustTier)}
        />
      </div>
      <TextField
        label="Daily quota"
        name="dailyQuota"
        type="number"
        min="0"
        value={values.dailyQuota}
        hint="Recipients per UTC day. Empty: only the trust tier limits them."
      />
      <div class="field-pair">
        <SelectField
          label="Track opens"
          name="tracking.opens"
          value={values.opens}
          options={[...fallback, ...OPENS]}
        />
        <SelectField
          label="Track clicks"
          name="tracking.clicks"
          value={values.clicks}
          options={[...fallback, ...CLICKS]}
        />
      </div>
      <TextArea
        label="Postal address"
        name="postalAddress"
        rows={3}
        value={values.postalAddress}
        hint="Every broadcast must show it, as {{ postalAddress }} does. Empty: broadcasts need none."
      />
    </>
  );
}
