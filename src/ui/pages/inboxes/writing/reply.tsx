import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Inbox, Message } from "../../../api/types.ts";
import { Files } from "../../../controls/files.tsx";
import { CheckBox, fieldValue, Form, TextArea, TextField } from "../../../controls/form.tsx";
import { useTask } from "../../../controls/task.ts";
import type { ChosenFile } from "../../../state/draft.ts";
import { useKey } from "../../../state/keyboard.ts";
import type { ReplyDraft } from "../../../state/reply-draft.ts";
import { can, me } from "../../../state/session.ts";
import { Canned, CannedChoice, fieldOf } from "./canned.tsx";
import { DraftStatus } from "./draft-status.tsx";
import { offerUndoOfSend, quoteOf, signed } from "./sending.ts";
import { Signature } from "./signature.tsx";

interface ReplyProps {
  draft: ReplyDraft;
  /** The message that it answers. */
  target: Message;
  inbox: Inbox | undefined;
  onSent: () => void;
}

/** Answers a message: recipients, text or canned reply, signature and quote, all as they are sent. */
export function ReplyForm({ draft, target, inbox, onSent }: ReplyProps) {
  const quoting = useSignal(true);
  const hasSignature = useSignal(true);
  const hasBcc = useSignal(draft.fields.peek().bcc !== "");
  const choosesCanned = useSignal(false);
  const task = useTask();
  const box = useRef<HTMLDivElement>(null);
  const { text, templateId, files } = draft.fields.value;
  const focusText = () =>
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>("textarea, .canned input")?.focus());
  useKey("t", () => {
    choosesCanned.value = can("templates:read");
  });
  useSavingOnLeave(draft);
  const wholeText = () => {
    const written = hasSignature.value ? signed(text, inbox) : text;
    return quoting.value ? `${written.trimEnd()}\n\n${quoteOf(target)}\n` : written;
  };
  const send = async () => {
    const before = draft.fields.peek();
    const { id } = await draft.send(templateId === "" ? { text: wholeText() } : {});
    offerUndoOfSend(id, before.to, async () => {
      draft.write(before);
      await draft.save();
    });
    onSent();
  };
  const choose = (id: string) => {
    choosesCanned.value = false;
    const { name } = target.addresses.from;
    draft.write({ templateId: id, data: JSON.stringify(name === undefined ? {} : { name }) });
    focusText();
  };
  return (
    <div ref={box}>
      <Form class="form" task={task} onSubmit={send}>
        <TextField label="To" name="to" value={fieldOf(draft, "to")} />
        {hasBcc.value || draft.fields.value.cc !== "" ? (
          <TextField label="Cc" name="cc" value={fieldOf(draft, "cc")} />
        ) : null}
        {hasBcc.value ? <TextField label="Bcc" name="bcc" value={fieldOf(draft, "bcc")} /> : null}
        {templateId === "" ? (
          <>
            <TextArea
              label="Text"
              labelHidden
              name="text"
              value={fieldOf(draft, "text")}
              rows={6}
              placeholder="Write a reply"
            />
            <Signature inbox={inbox} shown={hasSignature.value} />
          </>
        ) : (
          <Canned draft={draft} onInserted={focusText} />
        )}
        <div class="reply-tools">
          {can("templates:read") && templateId === "" ? (
            <button
              type="button"
              class="button small"
              title="t"
              onClick={() => {
                choosesCanned.value = true;
              }}
            >
              Canned reply
            </button>
          ) : null}
          <Files files={filesOf(draft, files)} limit={me.value?.limits.maxAttachments ?? 0} />
          {hasBcc.value ? null : (
            <button type="button" class="button bare small" onClick={() => (hasBcc.value = true)}>
              Cc, Bcc
            </button>
          )}
          {templateId === "" ? <CheckBox label="Quote the message" checked={quoting} /> : null}
          {templateId !== "" || inbox === undefined || inbox.signature === "" ? null : (
            <CheckBox label="Signature" checked={hasSignature} />
          )}
        </div>
        <div class="reply-tools">
          <DraftStatus draft={draft} />
          <button
            type="submit"
            class="button primary"
            title="Ctrl+Enter"
            disabled={task.busy.value || (text.trim() === "" && templateId === "")}
          >
            Send reply
          </button>
        </div>
      </Form>
      {choosesCanned.value ? (
        <CannedChoice
          onChoose={choose}
          onClose={() => {
            choosesCanned.value = false;
          }}
        />
      ) : null}
    </div>
  );
}

function filesOf(draft: ReplyDraft, files: readonly ChosenFile[]) {
  return fieldValue(
    () => files,
    (next) => draft.write({ files: next }),
  );
}

/** Saves a reply when it is left: the conversation is closed, or the page. */
function useSavingOnLeave(draft: ReplyDraft): void {
  useEffect(() => {
    const onHide = () => void draft.save(true);
    addEventListener("pagehide", onHide);
    return () => {
      removeEventListener("pagehide", onHide);
      void draft.save();
    };
  }, [draft]);
}
