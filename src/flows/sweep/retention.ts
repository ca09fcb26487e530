import type { Clock } from "../../core/time/clock.ts";
import { DAY_MS, HOUR_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import { MAX_HTML_CHARS } from "../../mail/text/preview.ts";
import { newPreview } from "../../mail/text/reply-text.ts";
import type { Statement } from "../../store/engine/client.ts";
import type { Contents } from "../../store/contents/content-read.ts";
import {
  messagesWithContent,
  withContentGuard,
  removeContents,
  releaseContents,
} from "../../store/messages/content-release.ts";
import { removalFromIndex } from "../../store/search/index-entries.ts";
import { budgetOf } from "../../store/contents/memory-budget.ts";
import { getContentStart } from "../../store/messages/message-content.ts";
import { isBroken, requireGuard } from "../../store/engine/guards.ts";
import {
  deleteDeliveries,
  deleteEmptied,
  deleteMessages,
  deleteOldCounts,
  deleteOldFigures,
  leftGuard,
  mayGoGuard,
  oldDeliveries,
  type OldMessage,
  oldMessages,
  projectsOf,
  rememberGone,
  shortenedThreads,
  type Shortened,
  shortenThread,
  uncountFromThreads,
} from "../../store/messages/retention.ts";
import { deleteOldAudit } from "../../store/installation/audit-log.ts";
import { deleteOldReports } from "../../store/domains/reports.ts";
import { deleteOldComplaints } from "../../store/projects/reputation.ts";
import { deleteExpiredSuppressions, oldSuppressions } from "../../store/projects/suppressions.ts";
import { utcDay } from "../../store/projects/usage.ts";
import { pauseWhenDone } from "./backoff.ts";
import { type WalkLimits, Walk } from "./walk.ts";
import { readWhole } from "../mime/read-whole.ts";

export interface RetentionDeps extends Contents {
  clock: Clock;
}

/** Messages deleted per page, a write of about five milliseconds. With a turn per second this is forty million a day. */
export const MESSAGES: WalkLimits = { rows: 50, pages: 10 };
/** Events and attempts deleted in one write, unless one message alone has more. */
export const ROWS_PER_WRITE = 2000;
/** Messages whose contents are removed. */
export const CONTENTS: WalkLimits = { rows: 100, pages: 10 };
/** Rows of the webhook log. */
export const DELIVERIES: WalkLimits = { rows: 500, pages: 4 };
/** Suppressions, most of which never expire, and the pause between two walks. */
export const SUPPRESSIONS: WalkLimits = { rows: 500, pages: 4 };
const SUPPRESSIONS_PAUSE_MS = HOUR_MS;
/**
 * Time for which an expired suppression is kept, milliseconds. If the clock was only ahead for some hours, the suppression is
 * in force again.
 */
export const EXPIRED_KEPT_MS = DAY_MS;
/** Days for which counts of recipients and outcomes are kept. Quotas read one of them, the reputation reads seven. */
export const COUNTED_DAYS = 30;
/** Counts deleted at a time, and the pause between two walks, which read all of them. */
export const COUNTS_PER_TURN = 1000;
const COUNTS_PAUSE_MS = HOUR_MS;
/** Days for which a project's figures are kept: two years to compare, and a month. */
export const FIGURES_DAYS = 762;
/** Days for which figures by domain are kept. A trigger removes those of projects that send. */
export const DESTINATIONS_DAYS = 400;
/** Projects read at a time, and rows of a table deleted for them. */
export const FIGURES: WalkLimits = { rows: 50, pages: 4 };
export const FIGURES_PER_WRITE = 1000;

/**
 * Makes the chore that deletes messages older than the retention, with their rows in other tables and in the search index.
 * If two processes delete the same messages, one of them changes nothing.
 */
export function forgetMessages(deps: RetentionDeps, days: number): () => Promise<void> {
  const walk = new Walk("msg", MESSAGES);
  return async () => {
    const before = deps.clock.now() - days * DAY_MS;
    await walk.turn(before, async (range) => {
      const messages = await oldMessages(deps.db, range, before);
      for (const going of batchesOf(messages.filter(({ mayGo }) => mayGo)))
        await deleteAll(deps, going, before);
      return messages;
    });
  };
}

/** Divides the messages into batches, one for each write. */
function batchesOf(messages: readonly OldMessage[]): OldMessage[][] {
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

async function deleteAll(
  deps: RetentionDeps,
  going: readonly { id: string; threadId: string | null }[],
  before: number,
): Promise<void> {
  const { db, clock } = deps;
  const ids = going.map(({ id }) => id);
  const threadIds = [...new Set(going.flatMap(({ threadId }) => threadId ?? []))];
  const index = await removalFromIndex(db, ids);
  const shortened = await shortenedThreads(db, threadIds, ids);
  const shortening = await lastMessageUpdates(deps, shortened);
  await unlessChanged(ids, () =>
    db.write([
      requireGuard("changed_since_read", mayGoGuard(ids, before)),
      requireGuard("changed_since_read", index.guard),
      ...(shortened.length === 0 ? [] : [requireGuard("changed_since_read", leftGuard(shortened))]),
      ...index.statements,
      ...shortening,
      ...(threadIds.length === 0 ? [] : [uncountFromThreads(threadIds, ids)]),
      releaseContents(ids, clock.now()),
      ...(threadIds.length === 0 ? [] : [rememberGone(ids)]),
      deleteMessages(ids),
      ...(threadIds.length === 0 ? [] : deleteEmptied(threadIds)),
    ]),
  );
}

/** Runs the write. If a message changed since it was read, leaves all of them to the next walk. */
async function unlessChanged(ids: readonly string[], write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!isBroken(error, "changed_since_read")) throw error;
    log("sweep").debug("old messages were left for the next walk", { messages: ids.length });
  }
}

/** Returns the statements for threads that lose their last message and keep older ones. */
async function lastMessageUpdates(deps: RetentionDeps, threads: readonly Shortened[]): Promise<Statement[]> {
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
  deps: RetentionDeps,
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

/**
 * Makes the chore that releases bodies, raw messages and attachments older than the retention. The messages stay. Another
 * chore removes the contents that no message refers to.
 */
export function forgetContents({ db, clock }: RetentionDeps, days: number): () => Promise<void> {
  const walk = new Walk("msg", CONTENTS);
  return async () => {
    const before = clock.now() - days * DAY_MS;
    await walk.turn(before, async (range) => {
      const kept = await messagesWithContent(db, range, before);
      const ids = kept.filter(({ isRemovable }) => isRemovable).map(({ id }) => id);
      const guard = withContentGuard(ids, before);
      if (ids.length > 0)
        await unlessChanged(ids, () =>
          db.write([requireGuard("changed_since_read", guard), ...removeContents(ids, clock.now())]),
        );
      return kept;
    });
  };
}

/** Makes the chore that deletes webhook deliveries that ended before the retention. */
export function forgetDeliveries({ db, clock }: RetentionDeps, days: number): () => Promise<void> {
  const walk = new Walk("dlv", DELIVERIES);
  return async () => {
    const before = clock.now() - days * DAY_MS;
    await walk.turn(before, async (range) => {
      const deliveries = await oldDeliveries(db, range, before);
      const ids = deliveries.filter(({ mayGo }) => mayGo).map(({ id }) => id);
      if (ids.length > 0) await db.write([deleteDeliveries(ids, before)]);
      return deliveries;
    });
  };
}

/**
 * Makes the chore that deletes expired suppressions. Otherwise each mailbox that was ever full would keep a row for
 * good.
 */
export function forgetSuppressions({ db, clock }: RetentionDeps): () => Promise<void> {
  const walk = new Walk("sup", SUPPRESSIONS);
  return pauseWhenDone(clock, SUPPRESSIONS_PAUSE_MS, (now) => {
    const before = now - EXPIRED_KEPT_MS;
    return walk.turn(before, async (range) => {
      const suppressions = await oldSuppressions(db, range, before);
      const ids = suppressions.filter(({ mayGo }) => mayGo).map(({ id }) => id);
      if (ids.length > 0) await db.write([deleteExpiredSuppressions(ids, before)]);
      return suppressions;
    });
  });
}

/** Makes the chore that deletes counts of days that are no longer read. */
export function forgetCounts({ db, clock }: RetentionDeps): () => Promise<void> {
  return pauseWhenDone(clock, COUNTS_PAUSE_MS, async (now) => {
    const day = utcDay(now - COUNTED_DAYS * DAY_MS);
    const counts = [
      await deleteOldCounts(db, "usage", day, COUNTS_PER_TURN),
      await deleteOldCounts(db, "reputation", day, COUNTS_PER_TURN),
      await deleteOldComplaints(db, day, COUNTS_PER_TURN),
    ];
    return counts.every((count) => count < COUNTS_PER_TURN);
  });
}

/** Makes the chore that deletes sums of DMARC and TLS reports of days that are no longer shown. */
export function forgetReports({ db, clock }: RetentionDeps, days: number): () => Promise<void> {
  return pauseWhenDone(clock, COUNTS_PAUSE_MS, async (now) => {
    const deleted = await deleteOldReports(db, utcDay(now - days * DAY_MS), COUNTS_PER_TURN);
    return deleted < COUNTS_PER_TURN;
  });
}

/** Makes the chore that deletes old changes of the audit trail. */
export function forgetAudit({ db, clock }: RetentionDeps, days: number): () => Promise<void> {
  return pauseWhenDone(clock, COUNTS_PAUSE_MS, async (now) => {
    return (await deleteOldAudit(db, now - days * DAY_MS, COUNTS_PER_TURN)) < COUNTS_PER_TURN;
  });
}

/** Makes the chore that deletes figures that are too old to be shown. Each hour of each project has a row. */
export function forgetFigures({ db, clock }: RetentionDeps): () => Promise<void> {
  // Younger projects have no such figures.
  const walk = new Walk("snd", FIGURES);
  return pauseWhenDone(clock, COUNTS_PAUSE_MS, (now) => {
    const [figuresFrom, destinationsFrom] = [now - FIGURES_DAYS * DAY_MS, now - DESTINATIONS_DAYS * DAY_MS];
    const day = Math.floor(destinationsFrom / DAY_MS);
    return walk.turn(destinationsFrom, async (range) => {
      const projects = await projectsOf(db, range);
      const ids = projects.map(({ id }) => id);
      if (ids.length > 0)
        await db.write([
          deleteOldFigures("stats", ids, Math.floor(figuresFrom / HOUR_MS), FIGURES_PER_WRITE),
          deleteOldFigures("stats_destinations", ids, day, FIGURES_PER_WRITE),
          deleteOldFigures("stats_domains", ids, day, FIGURES_PER_WRITE),
          deleteOldFigures("stats_providers", ids, day, FIGURES_PER_WRITE),
        ]);
      return projects;
    });
  });
}
