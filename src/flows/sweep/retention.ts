import type { Clock } from "../../core/time/clock.ts";
import { DAY_MS, HOUR_MS } from "../../core/time/units.ts";
import {
  contentEndsGuard,
  endingContents,
  messagesWithContent,
  type MessageWithContent,
  removeContents,
  withContentGuard,
} from "../../store/messages/content-release.ts";
import { requireGuard } from "../../store/engine/guards.ts";
import type { Guard } from "../../store/engine/client.ts";
import {
  deleteDeliveries,
  mayGoGuard,
  oldDeliveries,
  oldMessages,
  type RetentionColumn,
  shortestDays,
} from "../../store/messages/retention.ts";
import { deleteOldNotices } from "../../store/notices/notices.ts";
import { deleteOldAudit } from "../../store/installation/audit-log.ts";
import { batchesOf, type DeletionDeps, deleteMessagesIf, unlessChanged } from "./delete-messages.ts";
import { goneAt } from "../../store/contents/contents.ts";
import { deleteOldCounts, deleteOldFigures, projectsOf } from "../../store/projects/old-figures.ts";
import { deleteOldReports } from "../../store/domains/reports.ts";
import { deleteOldComplaints } from "../../store/projects/reputation.ts";
import { deleteExpiredSuppressions, oldSuppressions } from "../../store/projects/suppressions.ts";
import { utcDay } from "../../store/projects/usage.ts";
import { deleteOldJoinLinks } from "../../store/audience/join-links.ts";
import { deleteRemovedAddresses } from "../../store/rules/forward-addresses.ts";
import { deleteOldReplies, REPLY_EVERY_MS } from "../../store/rules/rule-effects.ts";
import { pauseWhenDone } from "./backoff.ts";
import { type WalkLimits, Walk } from "./walk.ts";

export type RetentionDeps = DeletionDeps;

/** Messages deleted per page, a write of about five milliseconds. With a turn per second this is forty million a day. */
export const MESSAGES: WalkLimits = { rows: 50, pages: 10 };
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
 * @param days of projects without retention of their own; 0: for good
 */
export function forgetMessages(deps: RetentionDeps, days: number): () => Promise<void> {
  const walk = new Walk("msg", MESSAGES);
  return sinceOf(deps, "event_days", days, async (before, age) => {
    await walk.turn(before, async (range) => {
      const messages = await oldMessages(deps.db, range, age);
      for (const going of batchesOf(messages.filter(({ mayGo }) => mayGo))) {
        const guard = mayGoGuard(
          going.map(({ id }) => id),
          age,
        );
        await deleteMessagesIf(deps, going, { guard });
      }
      return messages;
    });
  });
}

/** Makes a chore of a retention. It gets the time before which rows may be old in some project. */
function sinceOf(
  { db, clock }: RetentionDeps,
  column: RetentionColumn,
  given: number,
  turn: (before: number, age: { now: number; days: number | null }) => Promise<void>,
): () => Promise<void> {
  const days = given === 0 ? null : given;
  return async () => {
    const shortest = await shortestDays(db, column, days);
    const now = clock.now();
    if (shortest !== null) await turn(now - shortest * DAY_MS, { now, days });
  };
}

/**
 * Makes the chore that releases bodies, raw messages and attachments older than the retention. The messages stay. Another
 * chore removes the contents that no message refers to.
 */
export function forgetContents(deps: RetentionDeps, days: number): () => Promise<void> {
  const walk = new Walk("msg", CONTENTS);
  return sinceOf(deps, "content_days", days, async (before, age) => {
    await walk.turn(before, async (range) => {
      const kept = await messagesWithContent(deps.db, range, age);
      await removeThose(deps, kept, (ids) => withContentGuard(ids, age), deps.clock.now());
      return kept;
    });
  });
}

/** Makes the chore that removes the contents of sends that wanted that, once no recipient is in progress. */
export function endContents(deps: RetentionDeps): () => Promise<void> {
  const walk = new Walk("msg", CONTENTS);
  return async () => {
    const now = deps.clock.now();
    await walk.turn(now + DAY_MS, async (range) => {
      const ending = await endingContents(deps.db, range);
      await removeThose(deps, ending, contentEndsGuard, goneAt(now));
      return ending;
    });
  };
}

/** @param at the time at which the contents count as left by their last message, milliseconds */
async function removeThose(
  { db, clock }: RetentionDeps,
  messages: readonly MessageWithContent[],
  guardOf: (ids: readonly string[]) => Guard,
  at: number,
): Promise<void> {
  const ids = messages.filter(({ isRemovable }) => isRemovable).map(({ id }) => id);
  if (ids.length === 0) return;
  await unlessChanged(ids, () =>
    db.write([
      requireGuard("changed_since_read", guardOf(ids)),
      ...removeContents(ids, { now: clock.now(), leftAt: at }),
    ]),
  );
}

/** Makes the chore that deletes webhook deliveries that ended before the retention. */
export function forgetDeliveries(deps: RetentionDeps, days: number): () => Promise<void> {
  const { db } = deps;
  const walk = new Walk("dlv", DELIVERIES);
  return sinceOf(deps, "event_days", days, async (before, age) => {
    await walk.turn(before, async (range) => {
      const deliveries = await oldDeliveries(db, range, age);
      const ids = deliveries.filter(({ mayGo }) => mayGo).map(({ id }) => id);
      if (ids.length > 0) await db.write([deleteDeliveries(ids, age)]);
      return deliveries;
    });
  });
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

/** Makes a chore that deletes at most COUNTS_PER_TURN rows in a turn, and pauses when none are left. */
function forgetRows(
  clock: Clock,
  remove: (now: number, most: number) => Promise<number>,
): () => Promise<void> {
  return pauseWhenDone(clock, COUNTS_PAUSE_MS, async (now) => {
    return (await remove(now, COUNTS_PER_TURN)) < COUNTS_PER_TURN;
  });
}

/** Makes the chore that deletes sums of DMARC and TLS reports of days that are no longer shown. */
export function forgetReports({ db, clock }: RetentionDeps, days: number): () => Promise<void> {
  return forgetRows(clock, (now, most) => deleteOldReports(db, utcDay(now - days * DAY_MS), most));
}

/** Makes the chore that deletes old changes of the audit trail. */
export function forgetAudit({ db, clock }: RetentionDeps, days: number): () => Promise<void> {
  return forgetRows(clock, (now, most) => deleteOldAudit(db, now - days * DAY_MS, most));
}

/** Days for which an ended notice is kept. */
export const NOTICES_DAYS = 90;

/** Makes the chore that deletes the replies of rules by which each author got one of the day. */
export function forgetReplies({ db, clock }: RetentionDeps): () => Promise<void> {
  return forgetRows(clock, (now, most) => deleteOldReplies(db, now - REPLY_EVERY_MS, most));
}

/** Makes the chore that deletes forward addresses that were removed, once the links of their day no longer count. */
export function forgetForwardAddresses({ db, clock }: RetentionDeps): () => Promise<void> {
  return forgetRows(clock, (now, most) => deleteRemovedAddresses(db, now - DAY_MS, most));
}

/** Makes the chore that deletes links to join topics that no longer count. */
export function forgetJoinLinks({ db, clock }: RetentionDeps): () => Promise<void> {
  return forgetRows(clock, (now, most) => deleteOldJoinLinks(db, now - DAY_MS, most));
}

/** Makes the chore that deletes notices that ended long ago. */
export function forgetNotices({ db, clock }: RetentionDeps): () => Promise<void> {
  return forgetRows(clock, (now, most) => deleteOldNotices(db, now - NOTICES_DAYS * DAY_MS, most));
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
