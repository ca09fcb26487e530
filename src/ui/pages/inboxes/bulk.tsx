import type { Labelling, Thread } from "../../api/types.ts";
import type { Bulk, BulkAction, BulkQuestion } from "../../components/picks.tsx";
import { can } from "../../state/session.ts";
import { type Chosen, ThreadChoice } from "./choices.tsx";
import { changeThread, doneWords, EDITS, offerUndoOf, type ThreadEdit } from "./edits.ts";

/** Returns the actions on selected threads of a view. */
export function threadBulk(view: string, mailbox: Labelling | null): Bulk<Thread> {
  return {
    nameOf: ({ subject, participants }) => `${subject} with ${participants[0] ?? ""}`,
    actions: can("threads:reply") ? actionsOf(view, mailbox) : [],
    file: "threads",
    columns: {
      id: ({ id }) => id,
      subject: ({ subject }) => subject,
      participants: ({ participants }) => participants.join(", "),
      labels: ({ labels }) => labels.join(", "),
      messages: ({ messageCount }) => String(messageCount),
      last: ({ lastMessageAt }) => lastMessageAt,
    },
  };
}

/** Views that show a folder other than the inbox. */
const OUTSIDE: ReadonlySet<string> = new Set(["snoozed", "spam", "trash"]);

function actionsOf(view: string, mailbox: Labelling | null): Bulk<Thread>["actions"] {
  const home = OUTSIDE.has(view)
    ? action("Move to inbox", "e", EDITS.toInbox)
    : view === "archived"
      ? action("Bring back", "e", EDITS.bringBack)
      : action("Archive", "e", EDITS.archive);
  const canAssign = mailbox !== null && mailbox.members.length > 0;
  return [
    home,
    asking("Snooze", "b", "snooze", mailbox),
    asking("Label", "l", "label", mailbox),
    ...(canAssign ? [asking("Assign", "i", "assign", mailbox)] : []),
    action("Mark as read", "U", EDITS.markRead),
    action("Mark as unread", "u", EDITS.markUnread),
    ...(view === "spam" ? [] : [action("Spam", "!", EDITS.toSpam)]),
    ...(view === "trash" ? [] : [action("Trash", "#", EDITS.toTrash)]),
  ];
}

function action(verb: string, key: string, edit: ThreadEdit): BulkAction<Thread> {
  return {
    verb,
    key,
    done: doneWords(edit),
    leaves: edit.leaves === true,
    run: async (thread) => void (await changeThread(thread, edit.changes(thread))),
    finished: (threads) => offerUndoOf(edit, threads),
  };
}

function asking(verb: string, key: string, what: Chosen, mailbox: Labelling | null): BulkQuestion<Thread> {
  return {
    verb,
    key,
    ask: ({ rows, onChosen, onClose }) => (
      <ThreadChoice
        what={what}
        threads={rows}
        mailbox={mailbox}
        onEdit={(edit) => onChosen(action(verb, key, edit))}
        onClose={onClose}
      />
    ),
  };
}
