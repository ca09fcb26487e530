import { inboxLocalPart, isCatchAll, splitAddress } from "../../core/addresses.ts";
import type { Message } from "../../store/messages/messages.ts";
import type { Guard } from "../../store/engine/client.ts";

/** Returns whether an address is one of an inbox's own, by which it takes part in a conversation. */
export type IsOwnAddress = (email: string) => boolean;

/**
 * Returns the test for an inbox's own addresses: in any case of letters, with any `+label` (RFC 5233). Those of a catch-all are
 * the ones that a message uses, because the others at its domain may be another mailbox's.
 * @param used the addresses that the message was written to or sent from
 */
export function ownAddresses(inboxAddress: string, used: readonly string[]): IsOwnAddress {
  const own = new Set([inboxAddress, ...(isCatchAll(inboxAddress) ? used.map(inboxAddressOf) : [])]);
  return (email) => own.has(inboxAddressOf(email));
}

/** Returns the address of the inbox that an address would reach: in lower case, without its `+label`. */
export function inboxAddressOf(email: string): string {
  const split = splitAddress(email);
  return split === null ? email.toLowerCase() : `${inboxLocalPart(split.local)}@${split.domain}`;
}

/**
 * Yields the participants of a message's conversation but the inbox itself, without Bcc. They are found on demand: a
 * thread shows few, while a message may name thousands and reach a hundred inboxes.
 */
export function* participantsOf({ from, to, cc }: Message, isOwn: IsOwnAddress): Iterable<string> {
  for (const list of [[from], to, cc])
    for (const { email } of list) if (email !== "" && !isOwn(email)) yield email;
}

/** The inbox of a conversation. */
export interface ThreadInbox {
  id: string;
  address: string;
}

/** The thread of a send, and the guard that must hold. If not, the commit fails with the guard `message_conflict`. */
export interface ThreadEntry {
  threadId: string;
  inbox: ThreadInbox;
  guard: Guard;
}
