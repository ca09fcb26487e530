import { inboxLocalPart, splitAddress } from "../../core/addresses.ts";
import type { Message } from "../../store/messages/messages.ts";
import type { Guard } from "../../store/engine/client.ts";

/** Returns whether the address reaches the inbox: in any case of letters, with any `+label` (RFC 5233). */
export function reachesInbox(inboxAddress: string, email: string): boolean {
  return inboxAddressOf(email) === inboxAddress;
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
export function* participantsOf({ from, to, cc }: Message, inboxAddress: string): Iterable<string> {
  for (const list of [[from], to, cc])
    for (const { email } of list) if (email !== "" && !reachesInbox(inboxAddress, email)) yield email;
}

/** The thread of a send, and the guard that must hold. If not, the commit fails with the guard `message_conflict`. */
export interface ThreadEntry {
  threadId: string;
  guard: Guard;
}
