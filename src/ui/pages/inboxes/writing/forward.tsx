import { useSignal } from "@preact/signals";
import { post } from "../../../api/client.ts";
import type { Inbox, Message } from "../../../api/types.ts";
import { CheckBox, Form, SelectField, TextArea, TextField } from "../../../controls/form.tsx";
import { useTask } from "../../../controls/task.ts";
import { UNDO_SECONDS } from "../../../state/undo.ts";
import { parseMailboxes } from "../../../words/addresses.ts";
import { randomText } from "../../../words/random.ts";
import { offerUndoOfSend, signed } from "./sending.ts";
import { Signature } from "./signature.tsx";

interface ForwardProps {
  /** The message that is sent on. */
  target: Message;
  inbox: Inbox | undefined;
  onSent: () => void;
}

/** Forwards a message. */
export function ForwardForm({ target, inbox, onSent }: ForwardProps) {
  const to = useSignal("");
  const text = useSignal("");
  const as = useSignal("inline");
  const hasSignature = useSignal(true);
  const key = useSignal(randomText());
  const task = useTask();
  const send = async () => {
    const request = {
      to: parseMailboxes(to.value),
      text: hasSignature.value ? signed(text.value, inbox) : text.value,
      as: as.value,
      undoSeconds: UNDO_SECONDS,
    };
    const path = `/v1/emails/${encodeURIComponent(target.id)}/forward`;
    const { id } = await post<{ id: string }>(path, request, { idempotencyKey: `ui-forward-${key.value}` });
    offerUndoOfSend(id, to.value, async () => {});
    onSent();
  };
  return (
    <Form class="form" task={task} onSubmit={send}>
      <TextField label="Forward to" name="to" value={to} autoFocus placeholder="ben@example.com" />
      <TextArea
        label="Text"
        labelHidden
        name="text"
        value={text}
        rows={4}
        placeholder="Write something before it"
      />
      <Signature inbox={inbox} shown={hasSignature.value} />
      <SelectField
        label="The message"
        name="as"
        value={as}
        options={[
          { value: "inline", text: "As text, with its files" },
          { value: "attachment", text: "As one file (.eml) with its header" },
        ]}
      />
      <div class="reply-tools">
        {inbox === undefined || inbox.signature === "" ? null : (
          <CheckBox label="Signature" checked={hasSignature} />
        )}
        <button type="submit" class="button primary" disabled={task.busy.value || to.value.trim() === ""}>
          Forward message
        </button>
      </div>
    </Form>
  );
}
