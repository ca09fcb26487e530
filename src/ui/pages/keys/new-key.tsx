import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import type { ApiKey } from "../../api/types.ts";
import { Checks } from "../../controls/checks.tsx";
import { CheckBox, SelectField, TextArea, TextField } from "../../controls/form.tsx";
import { FormDialog, type MakerProps } from "../../controls/form-dialog.tsx";
import { accountWide, can, projectId, projects } from "../../state/session.ts";
import { SCOPES } from "../../api/server-lists.ts";
import { InboxChecks } from "./inboxes.tsx";

/** Creates an API key. */
export function NewKey({ onClose, onCreated }: MakerProps<ApiKey & { secret: string }>) {
  const name = useSignal("");
  const project = useSignal(projectId.peek() ?? "");
  const everything = useSignal(can("*"));
  const scopes = useSignal<ReadonlySet<string>>(new Set(["emails:send", "emails:read"].filter(can)));
  const recipients = useSignal("");
  const approval = useSignal(false);
  const limited = useSignal(false);
  const inboxes = useSignal<ReadonlySet<string>>(new Set());
  // Inboxes belong to the project that was chosen before.
  useEffect(() => {
    limited.value = false;
    inboxes.value = new Set();
  }, [project.value]);
  const create = async () => {
    const allowed = recipients.value.split(/[\s,]+/).filter((text) => text !== "");
    const body = {
      name: name.value.trim(),
      senderId: project.value === "" ? null : project.value,
      scopes: everything.value ? [] : [...scopes.value],
      ...(allowed.length === 0 ? {} : { allowRecipients: allowed }),
      approval: approval.value,
      ...(limited.value ? { inboxIds: [...inboxes.value] } : {}),
    };
    onCreated(await post<ApiKey & { secret: string }>("/v1/api-keys", body, { account: true }));
  };
  return (
    <FormDialog
      title="Create an API key"
      verb="Create key"
      incomplete={
        (!everything.value && scopes.value.size === 0) || (limited.value && inboxes.value.size === 0)
      }
      onSubmit={create}
      onClose={onClose}
    >
      <TextField
        label="Name"
        name="name"
        value={name}
        autoFocus
        placeholder="Production"
        hint="It says what the key is for."
      />
      {accountWide.value ? (
        <SelectField
          label="Project of the key"
          name="senderId"
          value={project}
          options={[
            ...projects.value.map(({ id, name }) => ({ value: id, text: name })),
            { value: "", text: "All projects" },
          ]}
        />
      ) : null}
      <CheckBox label="May do everything" checked={everything} />
      {everything.value ? null : (
        <Checks
          label="May do only this"
          name="scopes"
          chosen={scopes}
          options={SCOPES.filter(can).map((scope) => ({ value: scope, text: scope }))}
        />
      )}
      <InboxChecks project={project.value} limited={limited} chosen={inboxes} />
      <TextArea
        label="Recipients"
        name="allowRecipients"
        value={recipients}
        rows={2}
        placeholder="ana@example.com, @example.org"
        hint="If set, the key sends to these addresses and domains only."
      />
      <CheckBox label="Each send waits until another key approves it" checked={approval} />
    </FormDialog>
  );
}
