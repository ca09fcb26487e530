import { normalizeAddress } from "../addresses.ts";
import type { RuleMail } from "./rule.ts";

/** The field by which a message that comes round again is known: the inboxes that have forwarded it, the last one first. */
export const FORWARD_FIELD = "X-Postrider-Forwarded";
/** The fields that tell whether a message may be forwarded, in lower case. */
export const FORWARD_FIELDS = ["auto-submitted", FORWARD_FIELD.toLowerCase()] as const;
/** Number of inboxes that have forwarded a message at which it is not forwarded any more. */
export const MAX_FORWARD_HOPS = 3;
/** Number of Received fields at which a message is not forwarded any more. */
export const MAX_FORWARD_RECEIVED = 50;
/** Maximum number of addresses that the rules forward a message to. */
export const MAX_FORWARDS = 5;

/**
 * Why a message is not forwarded: it goes round, is the answer of a program, or is taken for spam. If several inboxes of the
 * project forward it to an address, the first does.
 */
export const NOT_FORWARDED = ["loop", "automatic", "spam", "already_forwarded"] as const;
export type NotForwarded = (typeof NOT_FORWARDED)[number];

/**
 * Returns the name of an inbox in a forward field. It is ASCII, because a field beyond it would need SMTPUTF8, and its octets could be
 * line breaks in another encoding.
 */
export function forwarderName(address: string): string {
  return address.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURIComponent);
}

/** Returns the names of the inboxes in a forward field, without what is no address. */
export function forwardersIn(field: string | undefined): string[] {
  const named = (field ?? "").split(",", MAX_FORWARD_HOPS).map((part) => part.trim());
  return named
    .filter((address) => normalizeAddress(address.replace(/^\*@/, "any@")) !== null)
    .map(forwarderName);
}

/**
 * Returns why a message must not be forwarded; null if it may be. A forged field only stops the message
 * of its forger. Mail with the null reverse path is a report or an answer of a program, which could come back for ever (RFC 3834).
 * @param isSpam true if it is filed as spam
 */
export function whyNotForwarded(
  { headers, mailFrom, receivedFields, inboxAddress }: RuleMail,
  isSpam: boolean,
): NotForwarded | null {
  const by = forwardersIn(headers[FORWARD_FIELD.toLowerCase()]);
  if (
    by.length >= MAX_FORWARD_HOPS ||
    by.includes(forwarderName(inboxAddress)) ||
    receivedFields >= MAX_FORWARD_RECEIVED
  )
    return "loop";
  const automatic = /^\s*auto-replied\b/i.test(headers["auto-submitted"] ?? "");
  if (automatic || mailFrom === "") return "automatic";
  return isSpam ? "spam" : null;
}
