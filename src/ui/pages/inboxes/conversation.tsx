import { useEffect, useRef } from "preact/hooks";
import { get, patch } from "../../api/client.ts";
import { isSeen, useLiveReload } from "../../api/live.ts";
import { useResource } from "../../api/resource.ts";
import type { Conversation as Answer, Thread } from "../../api/types.ts";
import { Detail } from "../../components/detail.tsx";
import { RelativeTime } from "../../components/time.tsx";
import { useTask } from "../../controls/task.ts";
import { Icon } from "../../controls/icon.tsx";
import { Problem } from "../../controls/problem.tsx";
import { useKey } from "../../state/keyboard.ts";
import { can } from "../../state/session.ts";
import { readChanges } from "../../state/unread.ts";
import { counted } from "../../words/amounts.ts";
import { ThreadMessage } from "./message.tsx";
import { Reply } from "./reply.tsx";

/** Minimum time between reloads of the conversation while events arrive, ms. */
const REFRESH_MS = 150;

interface ConversationProps {
  id: string;
  onClose: () => void;
  /** Called when the thread's row in the list has changed. */
  onChanged: () => void;
}

/** Reads a conversation. */
export function readThread(id: string): Promise<Answer> {
  return get<Answer>(`/v1/threads/${encodeURIComponent(id)}`);
}

/** A conversation: its messages, oldest first, and the reply. */
export function Conversation({ id, onClose, onChanged }: ConversationProps) {
  const path = `/v1/threads/${encodeURIComponent(id)}`;
  const thread = useResource(`thread ${id}`, () => readThread(id));
  const known = (messageId: string) =>
    thread.value.value?.messages.some((message) => message.id === messageId) === true;
  useLiveReload(
    thread.reload,
    REFRESH_MS,
    ({ type, messageId }) => type === "inbound_received" || known(messageId),
  );
  const task = useTask();
  const found = thread.value.value;
  const change = (changes: { read?: boolean; archived?: boolean; folder?: "inbox" | "spam" | "trash" }) =>
    task.run(async () => {
      const changed = await patch<Thread>(path, changes);
      const current = thread.value.value;
      if (current !== null) thread.set({ ...current, ...changed });
      readChanges.value++;
      onChanged();
    });
  const unread = found !== null && !found.read;
  // Marks the shown conversation as read, once per new message.
  useEffect(() => {
    if (unread && can("threads:reply") && isSeen()) void change({ read: true });
  }, [unread, found?.lastInboundAt]);
  const archive = async () => {
    if (found !== null && (await change({ archived: !found.archived })) && !found.archived) onClose();
  };
  useKey("e", () => void archive());
  const put = async (folder: "inbox" | "spam" | "trash") => {
    if (found !== null && can("threads:reply") && (await change({ folder }))) onClose();
  };
  useKey("#", () => void put("trash"));
  useKey("!", () => void put("spam"));
  return (
    <Detail
      name="Conversation"
      id={id}
      busy={thread.loading.value}
      onClose={onClose}
      actions={
        found === null || !can("threads:reply") ? null : (
          <>
            <button
              type="button"
              class="button small"
              onClick={() => void change({ read: false }).then(onClose)}
            >
              Mark as unread
            </button>
            <button type="button" class="button small" onClick={() => void archive()}>
              <Icon name="archive" />
              {found.archived ? "Bring back" : "Archive"}
            </button>
            {found.folder === "inbox" ? (
              <>
                <button type="button" class="button small" onClick={() => void put("spam")}>
                  Spam
                </button>
                <button type="button" class="button small" onClick={() => void put("trash")}>
                  Trash
                </button>
              </>
            ) : (
              <button type="button" class="button small" onClick={() => void put("inbox")}>
                Move to inbox
              </button>
            )}
          </>
        )
      }
    >
      <Problem error={task.error.value} />
      <Problem error={thread.error.value} onRetry={thread.reload} />
      {found === null ? null : <Messages thread={found} onReplied={thread.reload} />}
    </Detail>
  );
}

function Messages({ thread, onReplied }: { thread: Answer; onReplied: () => void }) {
  const { subject, messages, messageCount, notes } = thread;
  const end = useRef<HTMLDivElement>(null);
  const count = messages.length;
  // The newest message comes into view when there is one more.
  useEffect(() => {
    if (count > 1) end.current?.scrollIntoView({ block: "nearest" });
  }, [count]);
  const hidden = messageCount - count;
  return (
    <>
      <div class="detail-head">
        <h2 title={subject} dir="auto">
          {subject === "" ? "(no subject)" : subject}
        </h2>
        {hidden > 0 ? (
          <p class="quiet">
            The last {counted(count, "message")} of {messageCount} are shown.
          </p>
        ) : null}
      </div>
      <ol class="conversation">
        {messages.map((message, index) => (
          <ThreadMessage key={message.id} message={message} open={index >= count - 2} onReplied={onReplied} />
        ))}
      </ol>
      {notes.length === 0 ? null : (
        <section>
          <h3>Notes of the team</h3>
          {notes.map((note) => (
            <div key={note.id} class="letter-body">
              <p class="quiet">
                {note.author.name ?? note.author.type} <RelativeTime at={note.createdAt} />
              </p>
              <pre class="text">{note.text}</pre>
            </div>
          ))}
        </section>
      )}
      <div ref={end} />
      {can("threads:reply") && messages.some(({ direction }) => direction === "inbound") ? (
        <Reply key={thread.id} thread={thread} onReplied={onReplied} />
      ) : null}
    </>
  );
}
