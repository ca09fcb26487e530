import type { Signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { get } from "../../../api/client.ts";
import { type Resource, useResource } from "../../../api/resource.ts";
import type { Conversation, DraftRecord, DraftSummary, Inbox, Message, Page } from "../../../api/types.ts";
import { fieldsOf, readDraft, type ReplyFields } from "../../../state/draft-record.ts";
import { useKey } from "../../../state/keyboard.ts";
import { type ReplyDraft, replyDraft } from "../../../state/reply-draft.ts";
import { isMe } from "../../../state/reader.ts";
import { can } from "../../../state/session.ts";
import { ForwardForm } from "./forward.tsx";
import { NoteForm } from "./note.tsx";
import { Proposal, useDraftReload } from "./proposals.tsx";
import { ReplyForm } from "./reply.tsx";
import { recipientsOf, withoutTail } from "./sending.ts";

/** The kind of message that is written, and the message that it is about. Null: the newest one that fits. */
export interface Writing {
  mode: "reply" | "forward" | "note";
  messageId: string | null;
}

interface ComposerProps {
  thread: Conversation;
  inbox: Inbox | undefined;
  writing: Signal<Writing>;
  onChanged: () => void;
}

const EMPTY: ReplyFields = {
  to: "",
  cc: "",
  bcc: "",
  text: "",
  templateId: "",
  data: "{}",
  files: [],
  messageId: "",
};

/** Writes a reply, a forward or a note, and shows the drafts of others above it. */
export function Composer({ thread, inbox, writing, onChanged }: ComposerProps) {
  const { messages } = thread;
  const { mode, messageId } = writing.value;
  const named = messages.find(({ id }) => id === messageId);
  const inbound = messages.findLast(({ direction }) => direction === "inbound");
  const firstFor = (message: Message | undefined): ReplyFields =>
    message === undefined
      ? EMPTY
      : { ...EMPTY, ...recipientsOf(message, inbox, false), messageId: message.id };
  const first = firstFor(inbound);
  const draft = replyDraft(thread.id, first);
  const answered = messages.find(({ id }) => id === draft.fields.value.messageId) ?? inbound;
  const drafts = useDrafts(thread.id);
  useDraftReload(drafts.reload);
  const box = useRef<HTMLElement>(null);
  const toText = useRef(false);
  const canReply = can("threads:reply") && answered !== undefined;
  const write = (next: Writing["mode"], all = false) => {
    if (next === mode) focusIn(box.current);
    else toText.current = true;
    writing.value = { mode: next, messageId: null };
    if (next !== "reply" || answered === undefined) return;
    const everyone = recipientsOf(answered, inbox, true);
    // A reply to one keeps recipients that were typed.
    if (all) draft.write(everyone);
    else if (draft.fields.peek().cc === everyone.cc) draft.write(recipientsOf(answered, inbox, false));
  };
  // Before the page is painted, so that what is typed next goes into the field. The reply is to a message that was chosen, or to the
  // newest one while nothing is written.
  useLayoutEffect(() => {
    if (mode === "reply" && named !== undefined) {
      const { to, cc } = firstFor(named);
      draft.write({ to, cc, messageId: named.id });
    } else draft.begin(first);
    if (toText.current || named !== undefined) focusIn(box.current);
    toText.current = false;
  }, [writing.value, inbound?.id]);
  const take = (record: DraftRecord) => {
    const fields = fieldsOf(record, first);
    const text = answered === undefined ? fields.text : withoutTail(fields.text, answered, inbox);
    draft.take(record, { ...fields, text });
  };
  useOwnDraft(draft, drafts, take);
  useKey("r", () => canReply && write("reply"));
  useKey("a", () => canReply && write("reply", true));
  useKey("f", () => can("emails:send") && can("emails:read") && write("forward"));
  useKey("n", () => can("threads:reply") && write("note"));
  useKey("d", () => document.querySelector<HTMLElement>("[data-send-draft]")?.focus());
  const changed = () => {
    drafts.reload();
    onChanged();
  };
  const sent = () => {
    // So that the next key acts on the conversation.
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
    writing.value = { mode: "reply", messageId: null };
    changed();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (event.target instanceof HTMLElement) event.target.closest("form")?.requestSubmit();
  };
  const target = named ?? inbound ?? messages.at(-1);
  const others = (drafts.value.value?.data ?? []).filter(({ id }) => id !== draft.saved.value?.id);
  return (
    <section class="reply-box" aria-label="Write" ref={box} onKeyDown={onKeyDown}>
      {others.map(({ id }) => (
        <Proposal
          key={id}
          id={id}
          onEdit={(record) => {
            void draft.save().then(() => {
              take(record);
              write("reply");
            });
          }}
          onDone={changed}
        />
      ))}
      <Modes mode={mode} target={answered} inbox={inbox} onWrite={write} />
      {mode === "note" ? (
        <NoteForm threadId={thread.id} onAdded={sent} />
      ) : mode === "forward" && target !== undefined ? (
        <ForwardForm key={target.id} target={target} inbox={inbox} onSent={sent} />
      ) : answered === undefined || !canReply ? null : (
        <ReplyForm draft={draft} target={answered} inbox={inbox} onSent={sent} />
      )}
    </section>
  );
}

interface ModesProps {
  mode: Writing["mode"];
  target: Message | undefined;
  inbox: Inbox | undefined;
  onWrite: (mode: Writing["mode"], all?: boolean) => void;
}

function Modes({ mode, target, inbox, onWrite }: ModesProps) {
  const hasOthers = target !== undefined && recipientsOf(target, inbox, true).cc !== "";
  return (
    <fieldset class="segments">
      <legend class="hidden">Write</legend>
      {target === undefined ? null : (
        <button type="button" title="r" aria-pressed={mode === "reply"} onClick={() => onWrite("reply")}>
          Reply
        </button>
      )}
      {hasOthers ? (
        <button type="button" title="a" onClick={() => onWrite("reply", true)}>
          Reply to all
        </button>
      ) : null}
      {can("emails:send") && can("emails:read") ? (
        <button type="button" title="f" aria-pressed={mode === "forward"} onClick={() => onWrite("forward")}>
          Forward
        </button>
      ) : null}
      <button type="button" title="n" aria-pressed={mode === "note"} onClick={() => onWrite("note")}>
        Note
      </button>
    </fieldset>
  );
}

function focusIn(box: HTMLElement | null): void {
  const field = box?.querySelector<HTMLElement>("form [autofocus], form textarea, form .canned input");
  field?.focus();
  field?.scrollIntoView({ block: "nearest" });
}

/** Returns the drafts of a thread. */
function useDrafts(threadId: string): Resource<Page<DraftSummary>> {
  return useResource(`drafts of ${threadId}`, async () => {
    if (!can("drafts:write")) return { data: [], nextCursor: null };
    return get<Page<DraftSummary>>("/v1/drafts", { threadId, limit: 20 });
  });
}

/** Takes up the reader's newest draft of the thread, if nothing is written in this tab yet. */
function useOwnDraft(
  draft: ReplyDraft,
  drafts: Resource<Page<DraftSummary>>,
  take: (record: DraftRecord) => void,
): void {
  const tried = useRef(false);
  const list = drafts.value.value;
  useEffect(() => {
    const own = list?.data.find(({ author }) => isMe(author.id));
    if (list === null || tried.current) return;
    tried.current = true;
    if (own === undefined || draft.state.peek() !== "none") return;
    void readDraft(own.id).then(
      (record) => draft.state.peek() === "none" && take(record),
      // It was sent or discarded in the meantime.
      () => {},
    );
  }, [list]);
}
