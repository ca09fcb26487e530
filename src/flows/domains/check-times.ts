import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../core/time/units.ts";
import type { Domain } from "../../store/domains/domains.ts";

/** A new domain is checked every 5 minutes for 48 hours, then hourly; a verified one daily, or hourly if it has recommended records. */
const EAGER_MS = 5 * MINUTE_MS;
const EAGER_FOR_MS = 48 * HOUR_MS;

/** Time of failing checks after which a verified domain loses its status, milliseconds. */
export const FALL_BACK_AFTER_MS = 72 * HOUR_MS;

/**
 * Returns when a domain that was checked at `now` is checked next, milliseconds.
 * @param seconds delays between checks since the domain's creation, the last one repeating; null for the default
 * @param newKeyAt time at which a DKIM key was made that is not published yet; null if there is none
 */
export function nextCheckAt(
  domain: Pick<
    Domain,
    | ("createdAt" | "status" | "failingSince" | "receiving" | "verified" | "recommended")
    | ("delegated" | "delegationFound")
  >,
  seconds: readonly number[] | null,
  now: number,
  newKeyAt: number | null = null,
): number {
  if (seconds !== null) return nextInList(domain.createdAt, seconds, now);
  const settled =
    domain.status === "verified" &&
    (!domain.receiving || domain.verified.mx) &&
    (!domain.delegated || domain.delegationFound) &&
    newKeyAt === null;
  // A verified domain that fails is checked hourly, so that a repair shows the same day.
  if (settled && domain.failingSince === null) return now + (usesRecommended(domain) ? HOUR_MS : DAY_MS);
  const eager = domain.status === "pending" || domain.failingSince === null || newKeyAt !== null;
  // The record of a new key is checked as often as those of a new domain.
  const waitsSince = newKeyAt ?? domain.createdAt;
  return now + (eager && now - waitsSince < EAGER_FOR_MS ? EAGER_MS : HOUR_MS);
}

/** Names that messages carry must not be gone for long, so they are checked more often. Names in our zone stay. */
function usesRecommended({ recommended, delegationFound }: Pick<Domain, "recommended" | "delegationFound">) {
  return !delegationFound && (recommended.returnPath || recommended.links);
}

/** Shortest delay, milliseconds. A list of zeros must not spin. */
const LEAST_DELAY_MS = 100;

function nextInList(createdAt: number, seconds: readonly number[], now: number): number {
  // If the domain was created while the clock was ahead, count from now.
  let at = Math.min(createdAt, now);
  for (const delay of seconds) {
    at += delay * 1000;
    if (at > now) return Math.max(at, now + LEAST_DELAY_MS);
  }
  return now + Math.max((seconds[seconds.length - 1] ?? 0) * 1000, LEAST_DELAY_MS);
}
