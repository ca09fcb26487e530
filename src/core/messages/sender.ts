import { normalizeAddress } from "../addresses.ts";

/**
 * How far a program may act on what a received message asks for, from the least. `blocked` and `allowed` come from lists of senders.
 */
export const TRUSTS = ["blocked", "unauthenticated", "authenticated", "known", "allowed"] as const;
export type Trust = (typeof TRUSTS)[number];

/** The facts about the author in a received message's From, without the address. */
export interface SenderFacts {
  /** True if DMARC proves the domain of that very address. */
  authenticated: boolean;
  /** True if it is also a contact, or one that the project has written to in this thread. */
  known: boolean;
  trust: Trust;
}

/** The facts of a sender that nothing proves. Such a sender is never known, because anybody can write the address. */
export const UNAUTHENTICATED: SenderFacts = { authenticated: false, known: false, trust: "unauthenticated" };

/** Returns the facts of a sender that is authenticated. */
export function authenticatedSender(known: boolean): SenderFacts {
  return { authenticated: true, known, trust: known ? "known" : "authenticated" };
}

/** The sender of a received message, as its record and event show it. */
export interface ShownSender extends SenderFacts {
  /** The address in From. Its domain is in A-labels, so that letters of another script cannot pass for Latin ones. */
  address: string;
}

/**
 * Returns the sender of a received message; null if the message was stored before senders were judged.
 * @param from the address in From
 */
export function shownSender(from: string, facts: SenderFacts | undefined): ShownSender | null {
  return facts === undefined ? null : { address: normalizeAddress(from) ?? from, ...facts };
}
