import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { get } from "../../api/client.ts";
import { isSeen, useLiveReload } from "../../api/live.ts";
import { useReloadAfter, useResource } from "../../api/resource.ts";
import type { Conversation as Answer, Inbox, Thread, ThreadChanges } from "../../api/types.ts";
import { Detail } from "../../components/detail.tsx";
import { useTask } from "../../controls/task.ts";
import { Problem } from "../../controls/problem.tsx";
import { can } from "../../state/session.ts";
import { undone } from "../../state/undo.ts";
import { counted } from "../../words/amounts.ts";
import { changeThread, conversationKey, EDITS, offerUndoOf, type ThreadEdit } from "./edits.ts";
import { useMailbox } from "./mailbox.ts";
import { ThreadMessage } from "./message.tsx";
import { ThreadActions } from "./thread-actions.tsx";
import { ThreadMarks } from "./thread-marks.tsx";
import { ThreadNote } from "./thread-note.tsx";
import { Composer, type Writing } from "./writing/composer.tsx";

/** Minimum time between reloads of the conversation while events arrive, ms. */
const REFRESH_MS = 150;

interface ConversationProps {
  id: string;
  inboxes: readonly Inbox[];
  onClose: () => void;
  /** Called when the thread leaves the list that is open. */
  onLeave: (thread: Thread) => void;
}

/** Reads a conversation. */
export function readThread(id: string): Promise<Answer> {
  return get<Answer>(`/v1/threads/${encodeURIComponent(id)}`);
}

/** A conversation: its messages, oldest first, and the reply. */
export function Conversation({ id, inboxes, onClose, onLeave }: ConversationProps) {
  const thread = useResource(conversationKey(id), () => readThread(id));
  const mailbox = useMailbox().value.value;
  const known = (messageId: string) =>
    thread.value.value?.messages.some((message) => message.id === messageId) === true;
  useLiveReload(
    thread.reload,
    REFRESH_MS,
    ({ type, messageId }) => type === "inbound_received" || known(messageId),
  );
  useReloadAfter(undone.value, thread.reload);
  const task = useTask();
  const turn = useRef<Promise<unknown>>(Promise.resolve());
  const left = useRef(false);
  const found = thread.value.value;
  // One after another, because a key may be pressed while the thread is being marked as read.
  const change = (changes: (thread: Answer) => ThreadChanges): Promise<Thread | null> => {
    const changed = turn.current.then(async () => {
      const before = left.current ? null : thread.value.peek();
      if (before === null) return null;
      return (await task.run(() => changeThread(before, changes(before)))) ? before : null;
    });
    turn.current = changed;
    return changed;
  };
  const unread = found !== null && !found.read;
  // Marks the shown conversation as read, once per new message.
  useEffect(() => {
    if (unread && can("threads:reply") && isSeen()) void change(() => ({ read: true }));
  }, [unread, found?.lastInboundAt]);
  const edit = async (made: ThreadEdit) => {
    const before = await change(made.changes);
    if (before === null) return;
    if (made.leaves === true) onLeave(before);
    left.current = made.leaves === true || made === EDITS.markUnread;
    if (left.current) onClose();
    offerUndoOf(made, [before]);
  };
  const onEdit = can("threads:reply") ? (made: ThreadEdit) => void edit(made) : undefined;
  return (
    <Detail
      name="Conversation"
      id={id}
      busy={thread.loading.value}
      onClose={onClose}
      actions={
        found === null || onEdit === undefined ? null : (
          <ThreadActions thread={found} mailbox={mailbox} onEdit={onEdit} />
        )
      }
    >
      <Problem error={task.error.value} />
      <Problem error={thread.error.value} onRetry={thread.reload} />
      {found === null ? null : (
        <Messages
          thread={found}
          marks={<ThreadMarks thread={found} mailbox={mailbox} onEdit={onEdit} />}
          inbox={inboxes.find((inbox) => inbox.id === found.inboxId)}
          onChanged={thread.reload}
        />
      )}
    </Detail>
  );
}

interface MessagesProps {
  thread: Answer;
  inbox: Inbox | undefined;
  marks: ComponentChildren;
  onChanged: () => void;
}

/** A message or a note, with its time. */
type Entry = { at: string } & ({ message: Answer["messages"][number] } | { note: Answer["notes"][number] });

function Messages({ thread, inbox, marks, onChanged }: MessagesProps) {
  const { subject, messages, messageCount, notes } = thread;
  const writing = useSignal<Writing>({ mode: "reply", messageId: null });
  const end = useRef<HTMLDivElement>(null);
  const count = messages.length;
  const entries: Entry[] = [
    ...messages.map((message) => ({ at: message.createdAt, message })),
    ...notes.map((note) => ({ at: note.createdAt, note })),
  ].sort((one, other) => (one.at < other.at ? -1 : 1));
  const opened = new Set(messages.slice(-2).map(({ id }) => id));
  // The newest message comes into view when there is one more.
  useEffect(() => {
    if (entries.length > 1) end.current?.scrollIntoView({ block: "nearest" });
  }, [entries.length]);
  const hidden = messageCount - count;
  const write = canWrite();
  return (
    <>
      <div class="detail-head">
        <h2 title={subject} dir="auto">
          {subject === "" ? "(no subject)" : subject}
        </h2>
        {marks}
        {hidden > 0 ? (
          <p class="quiet">
            The last {counted(count, "message")} of {messageCount} are shown.
          </p>
        ) : null}
      </div>
      <ol class="conversation">
        {entries.map((entry) =>
          "note" in entry ? (
            <ThreadNote key={entry.note.id} threadId={thread.id} note={entry.note} onDeleted={onChanged} />
          ) : (
            <ThreadMessage
              key={entry.message.id}
              message={entry.message}
              open={opened.has(entry.message.id)}
              onReplied={onChanged}
              onWrite={(next) => {
                writing.value = next;
              }}
            />
          ),
        )}
      </ol>
      <div ref={end} />
      {write ? (
        <Composer key={thread.id} thread={thread} inbox={inbox} writing={writing} onChanged={onChanged} />
      ) : null}
    </>
  );
}

/** Returns whether the reader may write something in a conversation. */
function canWrite(): boolean {
  return ["threads:reply", "drafts:write", "emails:send"].some(can);
}
