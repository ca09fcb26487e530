import type { Labelling, Thread } from "../../api/types.ts";
import { Icon } from "../../controls/icon.tsx";
import { LocalTime } from "../../components/time.tsx";
import { labelEdit, type ThreadEdit, assignEdit } from "./edits.ts";
import { memberName } from "./mailbox.ts";

interface MarksProps {
  thread: Thread;
  mailbox: Labelling | null;
  /** Absent: the reader may not change them. */
  onEdit: ((edit: ThreadEdit) => void) | undefined;
}

/** The labels of a conversation, who takes care of it, and where it is. */
export function ThreadMarks({ thread, mailbox, onEdit }: MarksProps) {
  const { labels, assigneeId, archived, folder, snoozedUntil, deletesAt } = thread;
  return (
    <ul class="marks" aria-label="Labels, assignee and folder">
      {snoozedUntil === null ? null : (
        <li class="tag">
          Snoozed until <LocalTime at={snoozedUntil} />
        </li>
      )}
      {deletesAt === null ? null : (
        <li class="tag">
          {folder === "spam" ? "Spam" : "Trash"}, deleted on <LocalTime at={deletesAt} />
        </li>
      )}
      {archived && folder === "inbox" ? <li class="tag">Archived</li> : null}
      {assigneeId === null ? null : (
        <Mark
          text={`Assigned to ${memberName(mailbox, assigneeId)}`}
          remove="Assign to nobody"
          onRemove={onEdit && (() => onEdit(assignEdit(null, "")))}
        />
      )}
      {labels.map((label) => (
        <Mark
          key={label}
          text={label}
          remove={`Remove the label ${label}`}
          onRemove={onEdit && (() => onEdit(labelEdit(label, false)))}
        />
      ))}
    </ul>
  );
}

interface MarkProps {
  text: string;
  remove: string;
  onRemove: (() => void) | undefined;
}

function Mark({ text, remove, onRemove }: MarkProps) {
  return (
    <li class="tag label">
      <span class="cut" dir="auto">
        {text}
      </span>
      {onRemove === undefined ? null : (
        <button type="button" aria-label={remove} title={remove} onClick={onRemove}>
          <Icon name="cross" />
        </button>
      )}
    </li>
  );
}
