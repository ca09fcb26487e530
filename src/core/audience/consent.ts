import { invalid } from "../errors.ts";
import type { Choices } from "./topics.ts";
import { plainAddress } from "../networks.ts";
import { parseTime, TIME_EXPECTED } from "../time/date-times.ts";

/** One step of a contact's consent: when and how the person joined or left. */
export interface Consent {
  /** Milliseconds. */
  at: number;
  /** True if the person was subscribed afterwards. */
  subscribed: boolean;
  /** `api`, `page`, `one_click`, `double_opt_in`, `mail`, or words of the client. */
  how: string;
  /** The address from which the person acted. */
  ip?: string;
  /** The topic that the person joined or left. Missing: the subscription as a whole. */
  topicId?: string;
}

/**
 * Maximum number of entries of a contact. Beyond it the second one goes, because the first says how the address came into
 * the list.
 */
export const MAX_CONSENTS = 30;
/** Maximum characters of `how`. */
export const MAX_HOW_CHARS = 100;

/** How a person agreed or left, as a client says it. */
export interface GivenConsent {
  at?: string | undefined;
  how?: string | undefined;
  ip?: string | undefined;
}

/** Returns the entry of a change at `now`, milliseconds. @throws AppError 422 for a time to come, or what is no address */
export function readConsent(given: GivenConsent | undefined, subscribed: boolean, now: number): Consent {
  const at = given?.at === undefined ? now : parseTime(given.at);
  if (at === null) throw invalid("consent.at", TIME_EXPECTED);
  if (at > now) throw invalid("consent.at", "must not be in the future.");
  const ip = given?.ip === undefined ? undefined : plainAddress(given.ip);
  if (ip === null) throw invalid("consent.ip", "must be an IP address.");
  return { at, subscribed, how: given?.how?.toWellFormed() ?? "api", ...(ip === undefined ? {} : { ip }) };
}

/** Returns the entries of choices about topics that were made with `entry`. */
export function consentsOf(entry: Consent, choices: Choices): Consent[] {
  return Object.entries(choices).map(([topicId, choice]) => ({
    ...entry,
    subscribed: choice === 1,
    topicId,
  }));
}

/** Returns the trail with another entry. If it is the same as one before, the trail stays as it is. */
export function withConsent(trail: readonly Consent[], entry: Consent): readonly Consent[] {
  const text = JSON.stringify(entry);
  if (trail.some((known) => JSON.stringify(known) === text)) return trail;
  const kept = trail.length < MAX_CONSENTS ? trail : trail.toSpliced(1, trail.length - MAX_CONSENTS + 1);
  return [...kept, entry];
}
