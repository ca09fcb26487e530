import { createHash } from "node:crypto";
import { type Comparison, compared, type Rate, rateOf } from "./rates.ts";

/*
 * The test of two subjects. Part of the contacts gets it: half of them the subject of the broadcast, the rest the other one. After a
 * wait, the better subject goes to all others. A team that cannot tell which subject works would miss it. Two broadcasts to two
 * segments are simpler, but their readers differ by more than chance, and a person has to send the rest.
 */

/** The two subjects: `a` is that of the broadcast, `b` the other one. */
export const VARIANTS = ["a", "b"] as const;
export type Variant = (typeof VARIANTS)[number];

/** What decides: opens or clicks of people. */
export const AB_MEASURES = ["opens", "clicks"] as const;
export type AbMeasure = (typeof AB_MEASURES)[number];

/** Smallest share of the contacts that get a test. With 1, all get it, and nothing is decided. */
export const MIN_AB_SHARE = 0.01;
/** Longest wait for a decision, minutes: 7 days. */
export const MAX_AB_WAIT_MINUTES = 10_080;

/** Fields of a test that a client may leave out. */
export const AB_DEFAULTS = { share: 0.2, waitMinutes: 240, by: "opens" } as const;

/** The messages of a subject that arrived, and the recipients who opened or clicked, without machines. */
export interface Reached {
  arrived: number;
  opened: number;
  clicked: number;
}

/** The decision after the wait. */
export interface AbDecision {
  /** Null: neither subject was clearly better, so the rest gets `a`. */
  winner: Variant | null;
  /** Milliseconds. */
  at: number;
  /** The figures that decided. */
  figures: Record<Variant, Reached>;
}

/** A test of two subjects, with its state. */
export interface AbTest {
  /** The other subject. */
  subject: string;
  /** Part of the contacts that get the test, up to 1. Half of it gets each subject. */
  share: number;
  waitMinutes: number;
  by: AbMeasure;
  /** When it is decided, milliseconds; null until the last message of the test was tried. */
  decideAt: number | null;
  decision: AbDecision | null;
}

/** Returns whether the rest of the contacts waits for a decision. */
export function isUndecided({ share, decision }: AbTest): boolean {
  return share < 1 && decision === null;
}

/** Number of places. Each contact has one of them in a broadcast. */
const PLACES = 2 ** 20;

/** The contacts of a step, by their places. A place is that which the end of the id names, times a factor, plus an offset. */
export interface Places {
  factor: number;
  offset: number;
  count: number;
  /** Places from this one, */
  from: number;
  /** and below this one. */
  below: number;
}

/**
 * Returns the places of the contacts that are next: those of the test, or the rest once it is decided. The end of an id is random, so
 * which contacts have them is too, and is another choice in each broadcast. It stays the same after a crash.
 */
export function placesOf(broadcastId: string, { share, decision }: AbTest): Places {
  const hash = createHash("sha256").update(broadcastId).digest();
  const limit = Math.round(share * PLACES);
  // With an odd factor, no two ends of ids have the same place.
  const mix = { factor: (hash.readUInt32BE(0) % PLACES) | 1, offset: hash.readUInt32BE(4) % PLACES };
  const part = decision === null ? { from: 0, below: limit } : { from: limit, below: PLACES };
  return { ...mix, count: PLACES, ...part };
}

/** Returns the subject that a contact at a place gets in the test. */
export function variantAt({ below }: Places, place: number): Variant {
  return place < below / 2 ? "a" : "b";
}

/** Returns the rate that a test measures. */
export function measured(by: AbMeasure, { arrived, opened, clicked }: Reached): Rate {
  return rateOf(by === "opens" ? opened : clicked, arrived);
}

/** Compares both subjects. */
export function compareVariants(by: AbMeasure, figures: Record<Variant, Reached>): Comparison {
  return compared(measured(by, figures.a), measured(by, figures.b));
}

/** Returns the subject that is clearly better; null if none is. */
export function winnerOf(by: AbMeasure, figures: Record<Variant, Reached>): Variant | null {
  const { difference, isClear } = compareVariants(by, figures);
  if (!isClear || difference === null) return null;
  return difference > 0 ? "a" : "b";
}

const WORDS = { opens: "opened", clicks: "clicked" } as const;

/** Returns a sentence about why a subject is better, or none is. */
export function reasonOf(by: AbMeasure, figures: Record<Variant, Reached>): string {
  const [a, b] = [measured(by, figures.a), measured(by, figures.b)];
  const without = VARIANTS.find((variant) => figures[variant].arrived === 0);
  if (without !== undefined) return `No message with subject ${without.toUpperCase()} has arrived.`;
  if (a.count + b.count === 0) return `No reader has ${WORDS[by]} a message of the test.`;
  const rates = `A was ${WORDS[by]} by ${withMargin(a)}, B by ${withMargin(b)}.`;
  return winnerOf(by, figures) === null
    ? `${rates} The difference is within the margin of error (95 %).`
    : `${rates} The difference is beyond the margin of error (95 %).`;
}

/** Returns a rate with its margin of error, as `31.0 % ± 2.1`. */
function withMargin({ rate, margin }: Rate): string {
  const percent = (part: number | null) => ((part ?? 0) * 100).toFixed(1);
  return `${percent(rate)} % ± ${percent(margin)}`;
}
