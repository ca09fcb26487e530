import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import type { Inbox } from "../../api/types.ts";
import { SelectField, TextArea, TextField } from "../../controls/form.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
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
    <FormDialog title="Simulate a message" verb="Simulate message" onSubmit={simulate} onClose={onClose}>
      <SelectField
        label="To"
        name="inboxId"
        value={values.inboxId}
        options={inboxes.map(({ id, address }) => ({ value: id, text: address }))}
      />
      <TextField label="From" name="from" value={values.from} />
      <TextField label="Subject" name="subject" value={values.subject} />
      <TextArea label="Text" name="text" value={values.text} rows={6} />
      <p class="hint">It is marked as a test, and your webhooks get a real event.</p>
    </FormDialog>
  );
}
