import { useSignal } from "@preact/signals";
import { patch, post, remove } from "../../api/client.ts";
import type { Webhook } from "../../api/types.ts";
import { Confirm } from "../../controls/dialog.tsx";
import { SelectField } from "../../controls/form.tsx";
import { useTask } from "../../controls/task.ts";
import { Problem } from "../../controls/problem.tsx";
import { WebhookForm } from "./form.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";

interface ActionsProps {
  webhook: Webhook;
  path: string;
  onChanged: (webhook: Webhook) => void;
  onSecret: (secret: string) => void;
  onDeleted: () => void;
}

/** The actions on a webhook. */
export function Actions({ webhook, path, onChanged, onSecret, onDeleted }: ActionsProps) {
  const open = useSignal<"change" | "rotate" | "delete" | null>(null);
  const task = useTask();
  const close = () => {
    open.value = null;
  };
  const turn = () =>
    task.run(async () => onChanged(await patch<Webhook>(path, { enabled: !webhook.enabled })));
  return (
    <>
      <Problem error={task.error.value} />
      <button type="button" class="button small" onClick={() => (open.value = "delete")}>
        Delete
      </button>
      <button type="button" class="button small" onClick={() => (open.value = "rotate")}>
        Rotate secret
      </button>
      <button type="button" class="button small" onClick={() => (open.value = "change")}>
        Change
      </button>
      <button type="button" class="button small" disabled={task.busy.value} onClick={() => void turn()}>
        {webhook.enabled ? "Disable" : "Enable"}
      </button>
      {open.value === "change" ? (
        <WebhookForm
          webhook={webhook}
          onClose={close}
          onSaved={(saved) => {
            onChanged(saved);
            close();
          }}
        />
      ) : null}
      {open.value === "rotate" ? <Rotate path={path} onSecret={onSecret} onClose={close} /> : null}
      {open.value === "delete" ? (
        <Delete webhook={webhook} path={path} onDeleted={onDeleted} onClose={close} />
      ) : null}
    </>
  );
}

interface RotateProps {
  path: string;
  onSecret: (secret: string) => void;
  onClose: () => void;
}

/** How long the previous secret also signs, seconds. */
const GRACES = [
  { value: "0", text: "Not at all" },
  { value: "3600", text: "1 hour" },
  { value: "86400", text: "1 day" },
  { value: "604800", text: "7 days" },
];

function Rotate({ path, onSecret, onClose }: RotateProps) {
  const grace = useSignal("86400");
  const rotate = async () => {
    const body = { graceSeconds: Number(grace.value) };
    const { signingSecret } = await post<Webhook>(`${path}/rotate-secret`, body);
    onClose();
    onSecret(signingSecret);
  };
  return (
    <FormDialog
      title="Rotate the signing secret"
      verb="Rotate secret"
      keep="Keep it"
      onSubmit={rotate}
      onClose={onClose}
    >
      <SelectField
        label="The previous secret also signs for"
        name="graceSeconds"
        value={grace}
        options={GRACES}
        hint="In that time your program can turn to the new secret without losing events."
      />
    </FormDialog>
  );
}

interface DeleteProps {
  webhook: Webhook;
  path: string;
  onDeleted: () => void;
  onClose: () => void;
}

function Delete({ webhook: { url }, path, onDeleted, onClose }: DeleteProps) {
  const erase = async () => {
    await remove(path);
    onDeleted();
  };
  return (
    <Confirm title="Delete the webhook?" verb="Delete webhook" onConfirm={erase} onClose={onClose}>
      <p>
        The webhook to <code>{url}</code> and its log are deleted. Deliveries that wait are not sent.
      </p>
    </Confirm>
  );
}
