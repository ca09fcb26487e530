import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../core/time-units.ts";
import type { Domain } from "../../store/domains.ts";

/** A new domain is checked every 5 minutes for its first 48 hours, then hourly; a sound one daily. */
const EAGER_MS = 5 * MINUTE_MS;
const EAGER_FOR_MS = 48 * HOUR_MS;

/** A verified domain that breaks keeps its status for this long of failing checks. */
export const FALL_BACK_AFTER_MS = 72 * HOUR_MS;

/**
 * When a domain checked at `now` is checked next, milliseconds.
 * @param seconds delays between checks counted from the domain's creation, the last one repeating; null: the default
 * @param newKeyAt when a DKIM key was made whose record is awaited; null: there is none
 */
export function nextCheckAt(
  domain: Pick<Domain, "createdAt" | "status" | "failingSince" | "receiving" | "verified">,
  seconds: readonly number[] | null,
  now: number,
  newKeyAt: number | null = null,
): number {
  if (seconds !== null) return nextInList(domain.createdAt, seconds, now);
  const settled =
    domain.status === "verified" && (!domain.receiving || domain.verified.mx) && newKeyAt === null;
  // A verified domain that fails is looked at hourly, so that its owner's repair shows the same day.
  if (settled && domain.failingSince === null) return now + DAY_MS;
  const eager = domain.status === "pending" || domain.failingSince === null || newKeyAt !== null;
  // A record asked for anew is looked for as a new domain's are.
  const askedAt = newKeyAt ?? domain.createdAt;
  return now + (eager && now - askedAt < EAGER_FOR_MS ? EAGER_MS : HOUR_MS);
}

/** A delay is never less than this: a list of zeros must not spin. */
const LEAST_DELAY_MS = 100;

function nextInList(createdAt: number, seconds: readonly number[], now: number): number {
  // Of one that was made while the clock was ahead, as if now: it would not be looked at until the clock has come there.
  let at = Math.min(createdAt, now);
  for (const delay of seconds) {
    at += delay * 1000;
    if (at > now) return Math.max(at, now + LEAST_DELAY_MS);
  }
  return now + Math.max((seconds[seconds.length - 1] ?? 0) * 1000, LEAST_DELAY_MS);
}
