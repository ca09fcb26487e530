import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import type { Message } from "../../api/types.ts";
import { TextField } from "../../controls/form.tsx";
import { useTask } from "../../controls/task.ts";
import { Problem } from "../../controls/problem.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
import { can } from "../../state/session.ts";

/** Approves or rejects a message that waits for it. */
export function Approval({ message, onChanged }: { message: Message; onChanged: () => void }) {
  const rejecting = useSignal(false);
  const task = useTask();
  if (message.awaitingApproval !== true || !can("emails:approve")) return null;
  const path = `/v1/emails/${encodeURIComponent(message.id)}`;
  const approve = () =>
    task.run(async () => {
      await post(`${path}/approve`);
      onChanged();
    });
  return (
    <>
      <Problem error={task.error.value} />
      <button
        type="button"
        class="button small primary"
        disabled={task.busy.value}
        onClick={() => void approve()}
      >
        Approve
      </button>
      <button type="button" class="button small" onClick={() => (rejecting.value = true)}>
        Reject
      </button>
      {rejecting.value ? (
        <Reject path={`${path}/reject`} onChanged={onChanged} onClose={() => (rejecting.value = false)} />
      ) : null}
    </>
  );
}

interface RejectProps {
  path: string;
  onChanged: () => void;
  onClose: () => void;
}

function Reject({ path, onChanged, onClose }: RejectProps) {
  const reason = useSignal("");
  const reject = async () => {
    const text = reason.value.trim();
    await post(path, text === "" ? {} : { reason: text });
    onChanged();
    onClose();
  };
  return (
    <FormDialog title="Reject this message?" verb="Reject message" onSubmit={reject} onClose={onClose}>
      <p>It will not be sent. This cannot be undone.</p>
      <TextField
        label="Reason"
        name="reason"
        value={reason}
        autoFocus
        placeholder="wrong recipient"
        hint="For the record and the failed event. Optional."
      />
    </FormDialog>
  );
}
