import { attemptsOf } from "./day-counts.ts";

/**
 * Messages a day to one provider that a new address may send, day by day. Providers trust an address that grows slowly; one
 * that begins with thousands is taken for a spammer's.
 */
export const WARM_UP_CAPS: readonly number[] = [
  50, 100, 250, 500, 1000, 2000, 5000, 10_000, 20_000, 40_000, 80_000, 100_000,
];

/** Share of a day's attempts that may be deferred. If there are more, the day repeats. */
const MOST_DEFERRED = 0.05;

/** The attempts of an address with a provider on one day. */
export interface WarmUpDay {
  accepted: number;
  deferred: number;
  refused: number;
  /** True if the provider has refused our address. */
  blocked: boolean;
}

/** How far an address has come with a provider. */
export interface WarmUpProgress {
  /** Counts from 1, and repeats after a day with trouble. 0: its first day is yet to come. */
  day: number;
  /** Maximum number of attempts today. */
  cap: number;
  /** Attempts today. */
  used: number;
}

/**
 * Returns the progress of an address with a provider; null once it is warm.
 * @param row what is stored; undefined if nothing is
 * @param day days since 1970, `first` the one on which the address begins
 */
export function progressOf(
  row: (WarmUpDay & { day: number; step: number; target: number }) | undefined,
  { day, first }: { day: number; first: number },
): WarmUpProgress | null {
  if (day < first) return { day: 0, cap: 0, used: 0 };
  const isToday = row === undefined || row.day >= day;
  const step = row === undefined ? 0 : isToday ? row.step : stepAfter(row.step, row);
  const cap = capOf(step, row?.target);
  if (cap === null) return null;
  const used = row !== undefined && isToday ? attemptsOf(row) : 0;
  return { day: step + 1, cap, used };
}

/** A warm-up that a setting or a route asks for. */
export interface WarmUpPlan {
  /** First day, in days since 1970. */
  from: number;
  /** Messages a day to which it grows. */
  target: number;
}

/** Messages a day to which an address grows unless a setting says otherwise. */
export const USUAL_TARGET = WARM_UP_CAPS.at(-1) ?? 0;

/** Returns the cap of a step, which counts from 0; null once the address is warm, after a day with the target as its cap. */
export function capOf(step: number, target = USUAL_TARGET): number | null {
  const before = step === 0 ? 0 : (WARM_UP_CAPS[step - 1] ?? Infinity);
  return before >= target ? null : Math.min(WARM_UP_CAPS[step] ?? target, target);
}

/** Returns the step after a day. A day without mail does not count, and a day with trouble repeats. */
export function stepAfter(step: number, { accepted, deferred, refused, blocked }: WarmUpDay): number {
  const attempts = attemptsOf({ accepted, deferred, refused });
  if (attempts === 0 || blocked || deferred > attempts * MOST_DEFERRED) return step;
  // A target above the last of them is a separate step.
  return Math.min(step + 1, WARM_UP_CAPS.length + 1);
}
