import { post, remove } from "../../api/client.ts";
import type { Conversation } from "../../api/types.ts";
import { RelativeTime } from "../../components/time.tsx";
import { Problem } from "../../controls/problem.tsx";
import { useTask } from "../../controls/task.ts";
import { authorName, isMe } from "../../state/reader.ts";
import { can } from "../../state/session.ts";
import { offerUndo } from "../../state/undo.ts";

interface NoteProps {
  threadId: string;
  note: Conversation["notes"][number];
  onDeleted: () => void;
}

/** A note of the team, in its place between the messages. */
export function ThreadNote({ threadId, note, onDeleted }: NoteProps) {
  const { id, author, text, createdAt } = note;
  const task = useTask();
  const erase = () =>
    task.run(async () => {
      const path = `/v1/threads/${encodeURIComponent(threadId)}/notes`;
      await remove(`${path}/${encodeURIComponent(id)}`);
      offerUndo({ text: "Note deleted.", undo: () => post(path, { text }) });
      onDeleted();
    });
  return (
    <li class="letter note">
      <p class="note-head">
        <span class="tag">Note</span>
        <strong class="cut">
          <bdi>{authorName(author)}</bdi>
        </strong>
        <span class="grow" />
        {can("threads:reply") && isMe(author.id) ? (
          <button
            type="button"
            class="button bare small"
            aria-label="Delete this note"
            disabled={task.busy.value}
            onClick={() => void erase()}
          >
            Delete
          </button>
        ) : null}
        <RelativeTime at={createdAt} />
      </p>
      <Problem error={task.error.value} />
      <div class="letter-body">
        <pre class="text" dir="auto">
          {text}
        </pre>
      </div>
    </li>
  );
}
