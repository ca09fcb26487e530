import { patch } from "../../api/client.ts";
import { amend } from "../../api/resource.ts";
import type { Conversation, Thread, ThreadChanges } from "../../api/types.ts";
import { readChanges } from "../../state/unread.ts";
import { offerUndo } from "../../state/undo.ts";
import { labelChanges } from "./mailbox.ts";

/** A change that a person makes to threads. */
export interface ThreadEdit {
  /** What was done: `Archived`. */
  done: string;
  /** True if the thread goes away from the list that is open. */
  leaves?: boolean;
  changes: (thread: Thread) => ThreadChanges;
}

const fixed = (done: string, changes: ThreadChanges, leaves = false): ThreadEdit => ({
  done,
  leaves,
  changes: () => changes,
});

/** The changes that need no choice. */
export const EDITS = {
  archive: fixed("Archived", { archived: true }, true),
  bringBack: fixed("Brought back", { archived: false }, true),
  markRead: fixed("Marked as read", { read: true }),
  markUnread: fixed("Marked as unread", { read: false }),
  toSpam: fixed("Moved to spam", { folder: "spam" }, true),
  toTrash: fixed("Moved to trash", { folder: "trash" }, true),
  toInbox: fixed("Moved to inbox", { folder: "inbox" }, true),
} as const;

/** Returns the edit that puts a label on threads, or takes it off. */
export function labelEdit(label: string, on: boolean): ThreadEdit {
  const without = ({ labels }: Thread) => labels.filter((one) => one !== label);
  return {
    done: on ? `Labelled ${label}` : `Label ${label} removed`,
    changes: (thread) => ({ labels: on ? [...without(thread), label] : without(thread) }),
  };
}

/** Returns the edit that assigns threads. @param id of a member; null: nobody */
export function assignEdit(id: string | null, email: string): ThreadEdit {
  return fixed(id === null ? "Assigned to nobody" : `Assigned to ${email}`, { assigneeId: id });
}

/** Returns the edit that hides threads until a time, milliseconds. */
export function snoozeEdit(until: number, hint: string): ThreadEdit {
  return fixed(`Snoozed until ${hint}`, { snoozedUntil: new Date(until).toISOString() }, true);
}

/** Returns the changes that restore what other changes replaced. */
function inverseOf(thread: Thread, changes: ThreadChanges): ThreadChanges {
  const { read, archived, labels, assigneeId, folder, snoozedUntil } = thread;
  const moved = changes.folder !== undefined || changes.snoozedUntil !== undefined;
  return {
    ...(changes.read === undefined ? {} : { read }),
    ...(changes.archived === undefined ? {} : { archived }),
    ...(changes.labels === undefined ? {} : { labels }),
    ...(changes.assigneeId === undefined ? {} : { assigneeId }),
    ...(!moved ? {} : folder === "snoozed" ? { snoozedUntil } : { folder }),
  };
}

/** Returns the key of the resource that holds a conversation. */
export function conversationKey(id: string): string {
  return `thread ${id}`;
}

/** Changes a thread, and its remembered conversation too, because the keys there depend on its folder. */
export async function changeThread({ id }: Pick<Thread, "id">, changes: ThreadChanges): Promise<void> {
  const changed = await patch<Thread>(`/v1/threads/${encodeURIComponent(id)}`, changes);
  amend<Conversation>(conversationKey(id), changed);
  readChanges.value++;
  if (changes.labels !== undefined) labelChanges.value++;
}

/** Returns what an edit has done, after a number. */
export function doneWords({ done }: ThreadEdit): string {
  return done.charAt(0).toLowerCase() + done.slice(1);
}

/** Offers to undo an edit of threads. @param threads as they were before */
export function offerUndoOf(edit: ThreadEdit, threads: readonly Thread[]): void {
  const count = threads.length;
  offerUndo({
    text: count === 1 ? `${edit.done}.` : `${count} ${doneWords(edit)}.`,
    undo: async () => {
      for (const thread of threads) await changeThread(thread, inverseOf(thread, edit.changes(thread)));
    },
  });
}
