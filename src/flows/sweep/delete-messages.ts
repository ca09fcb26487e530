import type { Clock } from "../../core/time/clock.ts";
import { log } from "../../log.ts";
import { MAX_HTML_CHARS } from "../../mail/text/preview.ts";
import { newPreview } from "../../mail/text/reply-text.ts";
import type { Contents } from "../../store/contents/content-read.ts";
import { budgetOf } from "../../store/contents/memory-budget.ts";
import type { Guard, Statement } from "../../store/engine/client.ts";
import { isBroken, requireGuard } from "../../store/engine/guards.ts";
import { releaseContents } from "../../store/messages/content-release.ts";
import { getContentStart } from "../../store/messages/message-content.ts";
import {
  deleteEmptied,
  deleteMessages,
  leftGuard,
  type OldMessage,
  rememberGone,
  shortenedThreads,
  type Shortened,
  shortenThread,
  uncountFromThreads,
} from "../../store/messages/retention.ts";
import { removalFromIndex } from "../../store/search/index-entries.ts";
import { readWhole } from "../mime/read-whole.ts";

export interface DeletionDeps extends Contents {
  clock: Clock;
}

/** Events and attempts deleted in one write, unless one message alone has more. */
export const ROWS_PER_WRITE = 2000;

/** Divides the messages into batches, one for each write. */
export function batchesOf(messages: readonly OldMessage[]): OldMessage[][] {
  const batches: OldMessage[][] = [];
  let room = 0;
  for (const message of messages) {
    const batch = batches.at(-1);
    if (batch === undefined || message.rows > room) {
      batches.push([message]);
      room = ROWS_PER_WRITE - message.rows;
    } else {
      batch.push(message);
      room -= message.rows;
    }
  }
  return batches;
}

/** How messages are deleted. */
export interface Deletion {
  /** Must hold for all of them. */
  guard: Guard;
  /** Statements before the guard, in the same write. */
  first?: readonly Statement[];
  /** False if their threads forget their Message-IDs. Default: true, so that replies find the thread. */
  remembers?: boolean;
  /** The time at which their contents count as left by their last message, milliseconds. If left out, now. */
  leftAt?: number;
}

/**
 * Deletes messages with their rows in other tables and in the search index, in one write. Contents that no message refers to
 * go later.
 * @returns false if a message changed since it was read; nothing was deleted then
 */
export async function deleteMessagesIf(
  deps: DeletionDeps,
  going: readonly { id: string; threadId: string | null }[],
  { guard, first = [], remembers = true, leftAt = deps.clock.now() }: Deletion,
): Promise<boolean> {
  const { db } = deps;
  const ids = going.map(({ id }) => id);
  const threadIds = [...new Set(going.flatMap(({ threadId }) => threadId ?? []))];
  const index = await removalFromIndex(db, ids);
  const shortened = await shortenedThreads(db, threadIds, ids);
  const shortening = await lastMessageUpdates(deps, shortened);
  return unlessChanged(ids, () =>
    db.write([
      ...first,
      requireGuard("changed_since_read", guard),
      requireGuard("changed_since_read", index.guard),
      ...(shortened.length === 0 ? [] : [requireGuard("changed_since_read", leftGuard(shortened))]),
      ...index.statements,
      ...shortening,
      ...(threadIds.length === 0 ? [] : [uncountFromThreads(threadIds, ids)]),
      releaseContents(ids, leftAt),
      ...(threadIds.length === 0 || !remembers ? [] : [rememberGone(ids)]),
      deleteMessages(ids),
      ...(threadIds.length === 0 ? [] : deleteEmptied(threadIds)),
    ]),
  );
}

/** Runs the write. If a message changed since it was read, leaves all of them as they are, and returns false. */
export async function unlessChanged(ids: readonly string[], write: () => Promise<unknown>): Promise<boolean> {
  try {
    await write();
    return true;
  } catch (error) {
    if (!isBroken(error, "changed_since_read")) throw error;
    log("sweep").debug("messages were left for the next walk", { messages: ids.length });
    return false;
  }
}

/** Returns the statements for threads that lose their last message and keep older ones. */
async function lastMessageUpdates(deps: DeletionDeps, threads: readonly Shortened[]): Promise<Statement[]> {
  const statements: Statement[] = [];
  for (const thread of threads) statements.push(shortenThread(thread, await previewOfNext(deps, thread)));
  return statements;
}

/** Octets of each text that a preview is made of. A character of UTF-8 has four at most. */
const PREVIEWED_OCTETS = 4 * MAX_HTML_CHARS;
/** Largest body that is read whole for its preview. Only a body in the object store is read whole. */
const MAX_PREVIEWED_OCTETS = 128 * 1024 * 1024;

/** Returns the preview of a message. It is empty if the content cannot be read, so that old messages are deleted anyway. */
async function previewOfNext(
  deps: DeletionDeps,
  { senderId, nextMessageId }: { senderId: string; nextMessageId: string },
): Promise<string> {
  try {
    const budget = budgetOf(MAX_PREVIEWED_OCTETS);
    const content = await getContentStart(
      { ...deps, readWhole },
      senderId,
      nextMessageId,
      PREVIEWED_OCTETS,
      budget,
    );
    return content === null ? "" : newPreview({ text: content.text.part, html: content.html.part });
  } catch (error) {
    log("sweep").warning("a thread has lost its preview", { messageId: nextMessageId, error: String(error) });
    return "";
  }
}
