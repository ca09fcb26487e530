import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import type { Inbox } from "../../api/types.ts";
import { Dialog } from "../../controls/dialog.tsx";
import { Form, SelectField, TextArea, TextField } from "../../controls/form.tsx";
import { useTask } from "../../controls/task.ts";
import { navigate } from "../../state/router.ts";
import { parseMailboxes } from "../../words/addresses.ts";

interface SimulateProps {
  inboxes: readonly Inbox[];
  inboxId: string;
  /** The thread to continue; none begins a new one. */
  inReplyTo?: string;
  subject?: string;
  from?: string;
  onClose: () => void;
}

/** Simulates a message to an inbox. It is handled like mail over SMTP. */
export function Simulate({ inboxes, inboxId, inReplyTo, subject, from, onClose }: SimulateProps) {
  const task = useTask();
  const values = {
    inboxId: useSignal(inboxId),
    from: useSignal(from ?? "Ana <ana@example.net>"),
    subject: useSignal(subject ?? "A question"),
    text: useSignal("Hello,\n\ndoes this work?\n\nAna\n"),
  };
  const simulate = async () => {
    const [sender] = parseMailboxes(values.from.value);
    const { threadId } = await post<{ threadId: string }>("/v1/inbound/simulate", {
      inboxId: values.inboxId.value,
      ...(sender === undefined ? {} : { from: sender }),
      subject: values.subject.value,
      text: values.text.value,
      ...(inReplyTo === undefined ? {} : { inReplyTo }),
    });
    navigate(`/threads/${threadId}`);
  };
  return (
    <Dialog title="Simulate a message" onClose={onClose}>
      <Form class="dialog-body form" task={task} onSubmit={simulate}>
        <SelectField
          label="To"
          name="inboxId"
          value={values.inboxId}
          task={task}
          options={inboxes.map(({ id, address }) => ({ value: id, text: address }))}
        />
        <TextField label="From" name="from" value={values.from} task={task} />
        <TextField label="Subject" name="subject" value={values.subject} task={task} />
        <TextArea label="Text" name="text" value={values.text} task={task} rows={6} />
        <p class="hint">It is marked as a test, and your webhooks get a real event.</p>
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" class="button primary" disabled={task.busy.value}>
            Simulate message
          </button>
        </footer>
      </Form>
    </Dialog>
  );
}
