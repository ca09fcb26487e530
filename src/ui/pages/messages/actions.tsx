import { useSignal } from "@preact/signals";
import { patch, post } from "../../api/client.ts";
import type { Message } from "../../api/types.ts";
import { now } from "../../browser/clock.ts";
import { Confirm } from "../../controls/dialog.tsx";
import { TextField } from "../../controls/form.tsx";
import { useTask } from "../../controls/task.ts";
import { Problem } from "../../controls/problem.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
import { draft, draftOf } from "../../state/draft.ts";
import { navigate, urlWith } from "../../state/router.ts";
import { can } from "../../state/session.ts";
import { isCaptured } from "../../words/answer.ts";
import { parseMailboxes } from "../../words/addresses.ts";
import { localField } from "../../words/time.ts";

interface ActionsProps {
  message: Message;
  onChanged: () => void;
}

/** The actions on a message: send it again, or cancel or reschedule it while it waits for its time. */
export function Actions({ message, onChanged }: ActionsProps) {
  const open = useSignal<"cancel" | "reschedule" | "release" | null>(null);
  const again = useTask();
  if (message.direction === "inbound" || !can("emails:send")) return null;
  const close = () => {
    open.value = null;
  };
  const sendAgain = async () => {
    draft.value = await draftOf(message);
    navigate(urlWith({ compose: "1" }));
  };
  return (
    <>
      <Problem error={again.error.value} />
      {message.status === "accepted" && message.scheduledAt !== null ? (
        <>
          <button type="button" class="button small" onClick={() => (open.value = "reschedule")}>
            Reschedule
          </button>
          <button type="button" class="button small" onClick={() => (open.value = "cancel")}>
            Cancel the send
          </button>
        </>
      ) : null}
      {message.recipients.some(isCaptured) ? (
        <button type="button" class="button small" onClick={() => (open.value = "release")}>
          Send for real
        </button>
      ) : null}
      <button
        type="button"
        class="button small"
        disabled={again.busy.value}
        onClick={() => void again.run(sendAgain)}
      >
        Send again
      </button>
      {open.value === "cancel" ? <Cancel message={message} onChanged={onChanged} onClose={close} /> : null}
      {open.value === "reschedule" ? (
        <Reschedule message={message} onChanged={onChanged} onClose={close} />
      ) : null}
      {open.value === "release" ? <Release message={message} onChanged={onChanged} onClose={close} /> : null}
    </>
  );
}

interface DialogProps extends ActionsProps {
  onClose: () => void;
}

function Cancel({ message, onChanged, onClose }: DialogProps) {
  const cancel = async () => {
    await post<void>(`/v1/emails/${encodeURIComponent(message.id)}/cancel`);
    onChanged();
    onClose();
  };
  return (
    <Confirm title="Cancel this send?" verb="Cancel the send" onConfirm={cancel} onClose={onClose}>
      <p>
        “<bdi>{message.subject}</bdi>” to {message.to.join(", ")} will not be sent. This cannot be undone.
      </p>
    </Confirm>
  );
}

/** Sends a captured message for real, and opens the new one. */
function Release({ message, onClose }: DialogProps) {
  const to = useSignal(message.recipients.map(({ email }) => email).join(", "));
  const send = async () => {
    const path = `/v1/emails/${encodeURIComponent(message.id)}/release`;
    const { id } = await post<{ id: string }>(path, { to: parseMailboxes(to.value) });
    onClose();
    navigate(`/messages/${id}`);
  };
  return (
    <FormDialog
      title="Send for real"
      verb="Send for real"
      keep="Keep it here"
      incomplete={parseMailboxes(to.value).length === 0}
      onSubmit={send}
      onClose={onClose}
    >
      <TextField
        label="To"
        name="to"
        value={to}
        hint="A copy leaves this machine to these addresses, separated by commas. The captured message stays."
      />
    </FormDialog>
  );
}

function Reschedule({ message, onChanged, onClose }: DialogProps) {
  const at = useSignal(localField(Date.parse(message.scheduledAt ?? message.createdAt)));
  const save = async () => {
    const scheduledAt = new Date(at.value).toISOString();
    await patch(`/v1/emails/${encodeURIComponent(message.id)}`, { scheduledAt });
    onChanged();
    onClose();
  };
  return (
    <FormDialog
      title="Reschedule"
      verb="Reschedule"
      keep="Keep the time"
      incomplete={at.value === ""}
      onSubmit={save}
      onClose={onClose}
    >
      <TextField
        label="Send at"
        name="scheduledAt"
        type="datetime-local"
        min={localField(now())}
        value={at}
        hint="In your own time zone. A past time sends now."
      />
    </FormDialog>
  );
}
