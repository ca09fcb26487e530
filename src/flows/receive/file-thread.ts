import { folderEnd } from "../../core/messages/mailbox.ts";
import { isSpam, type Spam } from "../../core/messages/spam.ts";
import type { Ruling } from "../../core/rules/ruling.ts";
import type { Statement } from "../../store/engine/client.ts";
import { changeThread } from "../../store/threads/thread-changes.ts";

interface FiledThread {
  senderId: string;
  threadId: string;
  /** The message begins it. */
  isNew: boolean;
  now: number;
}

/**
 * Returns the statement that files a thread by the rules and the spam filter, after the message that came to it. The filter
 * decides about new conversations alone, because an answer to our mail that it takes for spam must not vanish.
 */
export function fileThread(
  { senderId, threadId, isNew, now }: FiledThread,
  { labels, assigneeId, folder: ruled, archive, markRead }: Ruling,
  spam: Spam | null,
): Statement[] {
  const folder = ruled ?? (isNew && spam !== null && isSpam(spam) ? "spam" : null);
  const change = changeThread(senderId, threadId, {
    ...(archive ? { archived: true } : {}),
    ...(markRead ? { read: true } : {}),
    ...(labels.length === 0 ? {} : { addLabels: labels }),
    ...(assigneeId === null ? {} : { assignIfFree: assigneeId }),
    ...(folder === null ? {} : { place: { folder, until: folderEnd(folder, now) } }),
  });
  return change === null ? [] : [change];
}
