import {
  type AbTest,
  isUndecided,
  placesOf,
  type Variant,
  variantAt,
  winnerOf,
} from "../../core/audience/ab-test.ts";
import { neededFor } from "../../core/audience/rates.ts";
import { MINUTE_MS } from "../../core/time/units.ts";
import { type Finding, warning } from "../../mail/text/findings.ts";
import { reachedBy } from "../../store/audience/broadcast-figures.ts";
import { figuresOfVariants } from "../../store/audience/broadcast-variants.ts";
import { type Broadcast, timeOfChange } from "../../store/audience/broadcasts.ts";
import type { Db } from "../../store/engine/client.ts";

/** The subject of a message. `variant`: which of two is tested with it, if any. */
export interface ChosenSubject {
  subject: string;
  variant: Variant | null;
}

/** Returns the subject of the message of a contact at a place. */
export function subjectFor({ id, subject, abTest }: Broadcast, place: number): ChosenSubject {
  const own = subject ?? "";
  if (abTest === null) return { subject: own, variant: null };
  const { decision } = abTest;
  const variant = decision === null ? variantAt(placesOf(id, abTest), place) : null;
  const isOther = (variant ?? decision?.winner) === "b";
  return { subject: isOther ? abTest.subject : own, variant };
}

/**
 * Returns the changes of a broadcast whose last message was tried: it ends. If that was the last message of a test, it waits. After the
 * wait, the decision is stored, and it begins again with the rest of the contacts.
 */
export async function afterLast(db: Db, broadcast: Broadcast, now: number): Promise<Partial<Broadcast>> {
  const { id, abTest } = broadcast;
  if (abTest === null || !isUndecided(abTest))
    return { status: "sent", endedAt: now, nextAt: null, updatedAt: now };
  const decideAt = abTest.decideAt ?? now + abTest.waitMinutes * MINUTE_MS;
  if (now < decideAt) return { abTest: { ...abTest, decideAt }, nextAt: decideAt };
  const { a, b } = await figuresOfVariants(db, id);
  const figures = { a: reachedBy(a), b: reachedBy(b) };
  return {
    abTest: { ...abTest, decision: { winner: winnerOf(abTest.by, figures), at: now, figures } },
    lastContactId: "",
    nextAt: now,
    // A process that has read it at the same position before must not go on.
    updatedAt: timeOfChange(broadcast, now),
  };
}

/** Rates that a test of usual size should be able to tell apart. */
const USUAL = {
  opens: { from: 0.3, to: 0.35, words: "30 % from 35 % opened" },
  clicks: { from: 0.03, to: 0.045, words: "3.0 % from 4.5 % clicked" },
} as const;

/** Returns the warning about a test that too few contacts get. @param contacts those that the broadcast goes to */
export function sizeFindings({ share, by }: AbTest, contacts: number): Finding[] {
  const { from, to, words } = USUAL[by];
  const needed = neededFor(from, to);
  const each = Math.floor((contacts * share) / 2);
  if (each >= needed) return [];
  const all = 2 * needed;
  const enough = Math.ceil((all / contacts) * 100) / 100;
  return [
    warning(
      "ab_test_too_small",
      `About ${each} contacts would get each subject. To tell ${words}, each needs ${needed}.`,
      contacts < all
        ? `The broadcast needs ${all} contacts for that. With fewer, only a larger difference is clear.`
        : `Set \`abTest.share\` to ${enough} or more.`,
    ),
  ];
}

/** Returns the warning about a test that measures what the messages do not track. */
export function trackingFindings({ by }: AbTest, isTracked: boolean): Finding[] {
  if (isTracked) return [];
  return [
    warning(
      "ab_test_not_tracked",
      `No ${by} will be counted, so neither subject can win.`,
      by === "opens"
        ? "Opens need html, and `tracking.opens` of the project. Or decide by clicks."
        : "Clicks need a link in the html, and `tracking.clicks` of the project. Or decide by opens.",
    ),
  ];
}
