import type { Clock } from "../../core/clock.ts";
import { DAY_MS, HOUR_MS } from "../../core/time-units.ts";
import { log } from "../../log.ts";
import { newPreview } from "../../mail/reading/reply-text.ts";
import type { Statement } from "../../store/engine/client.ts";
import type { ContentDeps } from "../../store/contents/content-read.ts";
import { keptContents, keptGuard, letGo, releaseContents } from "../../store/contents/content-release.ts";
import { removalFromIndex } from "../../store/search/index-removal.ts";
import { getContent } from "../../store/contents/message-content.ts";
import { allOrNothing, isGuardBroken } from "../../store/outbox.ts";
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
} from "../../store/retention.ts";
import { deleteExpiredSuppressions, oldSuppressions } from "../../store/suppressions.ts";
import { utcDay } from "../../store/usage.ts";
import { restingWhenDone } from "./patience.ts";
import { type Stride, Walk } from "./walk.ts";

export interface RetentionDeps extends ContentDeps {
  clock: Clock;
}

/** A write of so many messages holds the event loop for some five milliseconds. A turn a second: forty million a day. */
export const MESSAGES: Stride = { rows: 50, looks: 10 };
/** Events and attempts deleted in one write, unless one message alone has more: a mail to many may have tens of thousands. */
export const ROWS_PER_WRITE = 2000;
/** Messages that lose their contents. */
export const CONTENTS: Stride = { rows: 100, looks: 10 };
/** Lines of the webhook log. */
export const DELIVERIES: Stride = { rows: 500, looks: 4 };
/** Suppressions of all projects, of which most never expire, and the pause between two walks. */
export const SUPPRESSIONS: Stride = { rows: 500, looks: 4 };
const SUPPRESSIONS_PAUSE_MS = HOUR_MS;
/**
 * Time that a suppression is kept which has expired, milliseconds: where the clock was ahead for some hours, what had
 * expired by it alone is in force again.
 */
export const EXPIRED_KEPT_MS = DAY_MS;
/** Days that counts of recipients and outcomes are kept: a quota asks for one of them, the reputation for seven. */
export const COUNTED_DAYS = 30;
/** Such counts deleted at a time, and the pause between two looks, which read all of them. */
export const COUNTS_PER_TURN = 1000;
const COUNTS_PAUSE_MS = HOUR_MS;
/** Days that a project's figures are kept: two years, one beside the other, and a month to compare them in. */
export const FIGURES_DAYS = 762;
/** Days that figures by domain are kept: those of a project that sends go as new ones come, by a trigger. */
export const DESTINATIONS_DAYS = 400;
/** Projects that are looked through at a time, and rows of a table deleted for them. */
export const FIGURES: Stride = { rows: 50, looks: 4 };
export const FIGURES_PER_WRITE = 1000;

/**
 * The chore that deletes messages older than the retention, with all that hangs on them and what the search has of
 * them. Several processes may do it at a time: of two that meet over the same messages, one changes nothing.
 */
export function forgetMessages(deps: RetentionDeps, days: number): () => Promise<void> {
  const walk = new Walk("msg", MESSAGES);
  return async () => {
    const before = deps.clock.now() - days * DAY_MS;
    await walk.turn(before, async (stretch) => {
      const messages = await oldMessages(deps.db, stretch, before);
      for (const going of sharesOf(messages.filter(({ mayGo }) => mayGo)))
        await deleteAll(deps, going, before);
      return messages;
    });
  };
}

/** The messages in their order, as many together as one write takes. */
function sharesOf(messages: readonly OldMessage[]): OldMessage[][] {
  const shares: OldMessage[][] = [];
  let room = 0;
  for (const message of messages) {
    const share = shares.at(-1);
    if (share === undefined || message.rows > room) {
      shares.push([message]);
      room = ROWS_PER_WRITE - message.rows;
    } else {
      share.push(message);
      room -= message.rows;
    }
  }
  return shares;
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
  const shortening = await shortenings(deps, shortened);
  await unlessMoved(ids, () =>
    db.write([
      allOrNothing(mayGoGuard(ids, before)),
      allOrNothing(index.guard),
      ...(shortened.length === 0 ? [] : [allOrNothing(leftGuard(shortened))]),
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

/** Something may have happened to one of them since they were read: they are read anew in the next walk. */
async function unlessMoved(ids: readonly string[], write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!isGuardBroken(error)) throw error;
    log("sweep").debug("old messages were left for the next walk", { messages: ids.length });
  }
}

/** What gives the threads another last message that lose theirs but keep an older one. */
async function shortenings(deps: RetentionDeps, threads: readonly Shortened[]): Promise<Statement[]> {
  const statements: Statement[] = [];
  for (const thread of threads) statements.push(shortenThread(thread, await previewLeft(deps, thread)));
  return statements;
}

/** The preview of a message; empty where its content cannot be read, for that must not keep old messages for ever. */
async function previewLeft(
  deps: RetentionDeps,
  { senderId, nextMessageId }: { senderId: string; nextMessageId: string },
): Promise<string> {
  try {
    const content = await getContent(deps, senderId, nextMessageId);
    return content === null ? "" : newPreview(content);
  } catch (error) {
    log("sweep").warning("a thread has lost its preview", { messageId: nextMessageId, error: String(error) });
    return "";
  }
}

/**
 * The chore that lets go of bodies, raw mail and attachments' bytes older than the retention. The messages stay; the
 * contents go with the sweep of what nobody names.
 */
export function forgetContents({ db, clock }: RetentionDeps, days: number): () => Promise<void> {
  const walk = new Walk("msg", CONTENTS);
  return async () => {
    const before = clock.now() - days * DAY_MS;
    await walk.turn(before, async (stretch) => {
      const kept = await keptContents(db, stretch, before);
      const ids = kept.filter(({ mayGo }) => mayGo).map(({ id }) => id);
      const guard = keptGuard(ids, before);
      if (ids.length > 0)
        await unlessMoved(ids, () => db.write([allOrNothing(guard), ...letGo(ids, clock.now())]));
      return kept;
    });
  };
}

/** The chore that deletes what the webhook log has of deliveries that were over before the retention. */
export function forgetDeliveries({ db, clock }: RetentionDeps, days: number): () => Promise<void> {
  const walk = new Walk("dlv", DELIVERIES);
  return async () => {
    const before = clock.now() - days * DAY_MS;
    await walk.turn(before, async (stretch) => {
      const deliveries = await oldDeliveries(db, stretch, before);
      const ids = deliveries.filter(({ mayGo }) => mayGo).map(({ id }) => id);
      if (ids.length > 0) await db.write([deleteDeliveries(ids, before)]);
      return deliveries;
    });
  };
}

/**
 * The chore that deletes suppressions that have expired: nobody is shown them any more, and each mailbox that was ever
 * full would leave its address for good.
 */
export function forgetSuppressions({ db, clock }: RetentionDeps): () => Promise<void> {
  const walk = new Walk("sup", SUPPRESSIONS);
  return restingWhenDone(clock, SUPPRESSIONS_PAUSE_MS, (now) => {
    const before = now - EXPIRED_KEPT_MS;
    return walk.turn(before, async (stretch) => {
      const suppressions = await oldSuppressions(db, stretch, before);
      const ids = suppressions.filter(({ mayGo }) => mayGo).map(({ id }) => id);
      if (ids.length > 0) await db.write([deleteExpiredSuppressions(ids, before)]);
      return suppressions;
    });
  });
}

/** The chore that deletes the counts of days that nothing asks for any more. */
export function forgetCounts({ db, clock }: RetentionDeps): () => Promise<void> {
  return restingWhenDone(clock, COUNTS_PAUSE_MS, async (now) => {
    const day = utcDay(now - COUNTED_DAYS * DAY_MS);
    const counts = [
      await deleteOldCounts(db, "usage", day, COUNTS_PER_TURN),
      await deleteOldCounts(db, "reputation", day, COUNTS_PER_TURN),
    ];
    return counts.every((count) => count < COUNTS_PER_TURN);
  });
}

/** The chore that deletes figures older than any that are asked for: each hour of each project has a row. */
export function forgetFigures({ db, clock }: RetentionDeps): () => Promise<void> {
  // A younger project has none so old.
  const walk = new Walk("snd", FIGURES);
  return restingWhenDone(clock, COUNTS_PAUSE_MS, (now) => {
    const [figuresFrom, destinationsFrom] = [now - FIGURES_DAYS * DAY_MS, now - DESTINATIONS_DAYS * DAY_MS];
    const day = Math.floor(destinationsFrom / DAY_MS);
    return walk.turn(destinationsFrom, async (stretch) => {
      const projects = await projectsOf(db, stretch);
      const ids = projects.map(({ id }) => id);
      if (ids.length > 0)
        await db.write([
          deleteOldFigures("stats", ids, Math.floor(figuresFrom / HOUR_MS), FIGURES_PER_WRITE),
          deleteOldFigures("stats_destinations", ids, day, FIGURES_PER_WRITE),
          deleteOldFigures("stats_domains", ids, day, FIGURES_PER_WRITE),
        ]);
      return projects;
    });
  });
}
