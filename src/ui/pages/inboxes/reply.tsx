import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { post } from "../../api/client.ts";
import type { Conversation, Message } from "../../api/types.ts";
import { Files } from "../../controls/files.tsx";
import { CheckBox, Form, TextArea, TextField } from "../../controls/form.tsx";
import { useTask } from "../../controls/task.ts";
import { attachmentsOf, type ChosenFile, unsent } from "../../state/draft.ts";
import { useKey } from "../../state/keyboard.ts";
import { me } from "../../state/session.ts";
import { parseMailboxes } from "../../words/addresses.ts";
import { quote } from "../../words/quoting.ts";
import { localTime } from "../../words/time.ts";

/** Answers the newest message that was received. */
export function Reply({ thread, onReplied }: { thread: Conversation; onReplied: () => void }) {
  const target = thread.messages.findLast(({ direction }) => direction === "inbound");
  const draftName = `reply ${thread.id}`;
  const text = useSignal(unsent.get(draftName) ?? "");
  const cc = useSignal("");
  const quoting = useSignal(true);
  const all = useSignal(false);
  const files = useSignal<readonly ChosenFile[]>([]);
  const box = useRef<HTMLDivElement>(null);
  const task = useTask();
  useEffect(() => {
    unsent.set(draftName, text.value);
  }, [draftName, text.value]);
  useKey("r", () => box.current?.querySelector("textarea")?.focus());
  if (target === undefined) return null;
  const others = target.addresses.to.length + target.addresses.cc.length - 1;
  const submit = async () => {
    const copies = parseMailboxes(cc.value);
    const attachments = attachmentsOf(files.value);
    await post(`/v1/threads/${encodeURIComponent(thread.id)}/reply`, {
      text: quoting.value ? `${text.value.trimEnd()}\n\n${quoteOf(target)}\n` : text.value,
      messageId: target.id,
      ...(all.value ? { replyAll: true } : {}),
      ...(copies.length === 0 ? {} : { cc: copies }),
      ...(attachments === undefined ? {} : { attachments }),
    });
    text.value = "";
    cc.value = "";
    files.value = [];
    onReplied();
  };
  return (
    <div class="reply-box" ref={box}>
      <Form class="form" task={task} onSubmit={submit}>
        <TextArea
          label={`Reply to ${answerTo(target)}`}
          name="text"
          value={text}
          rows={5}
          placeholder="Write a reply"
        />
        {all.value ? <TextField label="Cc" name="cc" value={cc} /> : null}
        <div class="reply-tools">
          <Files files={files} limit={me.value?.limits.maxAttachments ?? 0} />
          <CheckBox label="Quote the message" checked={quoting} />
          {others > 0 ? <CheckBox label="Reply to all" checked={all} /> : null}
          <button type="submit" class="button primary" disabled={task.busy.value || text.value.trim() === ""}>
            Send reply
          </button>
        </div>
      </Form>
    </div>
  );
}

function answerTo({ addresses: { replyTo, from } }: Message): string {
  const [first = from] = replyTo;
  return first.name ?? first.email;
}

function quoteOf({ addresses: { from }, createdAt, replyText, text }: Message): string {
  const written =
    replyText === undefined || replyText === null || replyText === "" ? (text ?? "") : replyText;
  return quote({ from: from.name ?? from.email, at: localTime(Date.parse(createdAt)), text: written });
}
