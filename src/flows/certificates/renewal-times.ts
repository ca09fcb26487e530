import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../core/time/units.ts";
import type { RenewalWindow } from "../../net/acme/objects.ts";
import type { AcmeError } from "../../net/acme/problem.ts";
import { MAX_PAUSE_MS } from "../../net/acme/signed-requests.ts";

/** A certificate is renewed when this share of its lifetime is left. */
const RENEWAL_SHARE = 1 / 3;
/** It is never left to the CA's window beyond this share. */
const LATEST_SHARE = 1 / 10;
/**
 * Least time before a new certificate is renewed, so that a wrong clock orders few. If the CA does not say when, also a
 * share of the lifetime.
 */
const FRESH_MS = HOUR_MS;
const FRESH_SHARE = 1 / 10;

/** Pause between two questions for the renewal window, and what a CA may make of it (RFC 9773 §4.3.2). */
const WINDOW_CHECK_MS = 6 * HOUR_MS;
const MIN_WINDOW_CHECK_MS = MINUTE_MS;
const MAX_WINDOW_CHECK_MS = DAY_MS;

/** First pauses after a failure, which double with each, and the longest. */
const REFUSED_MS = HOUR_MS;
const MAX_REFUSED_MS = DAY_MS;
/** Trouble on the way to the CA is often over in seconds, and the CA counts nothing of it. */
const TROUBLE_MS = 15 * SECOND_MS;
const MAX_TROUBLE_MS = 6 * HOUR_MS;
/** Share by which a pause is longer at random, so that installations which failed together do not come back together. */
const JITTER = 0.1;
/** Longest time that a certificate waits. If one waits longer, the clock has been set back since. */
export const FARTHEST_MS = MAX_PAUSE_MS * (1 + JITTER) + DAY_MS;

/** Pauses between two looks at an order: a tenth of its age within these. */
const MIN_POLL_MS = 2000;
const MAX_POLL_MS = MINUTE_MS;
const POLL_SHARE = 0.1;

/** The times of a certificate, milliseconds. */
export interface CertificateTimes {
  notBefore: number;
  notAfter: number;
  issuedAt: number;
}

/**
 * Returns when to renew a certificate: at a third of its lifetime left, or within the window that the CA wants.
 * @param place a number in [0, 1) that is always the same for a certificate: its place in the window
 */
export function renewalTime(
  { notBefore, notAfter, issuedAt }: CertificateTimes,
  window: RenewalWindow | null,
  place: number,
  now: number,
): number {
  const lifetime = notAfter - notBefore;
  const wanted =
    window === null
      ? notAfter - lifetime * RENEWAL_SHARE
      : Math.min(window.start + place * (window.end - window.start), notAfter - lifetime * LATEST_SHARE);
  // If it was issued in the future, the clock was wrong then, and says nothing.
  if (issuedAt > now) return Math.round(wanted);
  const fresh = window === null ? Math.max(FRESH_MS, lifetime * FRESH_SHARE) : FRESH_MS;
  return Math.round(Math.max(wanted, issuedAt + fresh));
}

/** Returns the pause until the next question for the window. */
export function windowCheckMs(window: RenewalWindow | null): number {
  const pause = window?.retryAfterMs ?? WINDOW_CHECK_MS;
  return Math.min(Math.max(pause, MIN_WINDOW_CHECK_MS), MAX_WINDOW_CHECK_MS);
}

/**
 * Returns the pause after a failure. After a refusal it is at least an hour, because CAs count them (RFC 8555 §6.6).
 * @param failures number of failures in a row, from 1
 */
export function retryPauseMs(
  error: Pick<AcmeError, "refused" | "retryAfterMs">,
  failures: number,
  random: number,
): number {
  const [first, most] = error.refused ? [REFUSED_MS, MAX_REFUSED_MS] : [TROUBLE_MS, MAX_TROUBLE_MS];
  const own = Math.min(first * 2 ** (failures - 1), most);
  return Math.round(Math.max(own, error.retryAfterMs ?? 0) * (1 + JITTER * random));
}

/** Returns the pause until the next look at an order, whole milliseconds. */
export function pollPauseMs(ageMs: number, retryAfterMs: number | null): number {
  const pause = retryAfterMs ?? Math.round(ageMs * POLL_SHARE);
  return Math.min(Math.max(pause, MIN_POLL_MS), MAX_POLL_MS);
}
