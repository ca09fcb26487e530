import { inboxLocalPart, splitAddress } from "../core/addresses.ts";
import type { Message } from "../store/messages.ts";
import type { Guard } from "../store/engine/client.ts";

/** Whether mail to the address comes to the inbox: in any case, with any `+label` (RFC 5233). */
export function reachesInbox(inboxAddress: string, email: string): boolean {
  return inboxAddressOf(email) === inboxAddress;
}

/** The address of the inbox that an address would reach: without a `+label`, lower case. */
export function inboxAddressOf(email: string): string {
  const split = splitAddress(email);
  return split === null ? email.toLowerCase() : `${inboxLocalPart(split.local)}@${split.domain}`;
}

/**
 * Everybody in a message's conversation but the inbox itself. Bcc is nobody's to know. Found one after another: a thread
 * shows few, a mail may name thousands, and be for a hundred inboxes.
 */
export function* participantsOf({ from, to, cc }: Message, inboxAddress: string): Iterable<string> {
  for (const list of [[from], to, cc])
    for (const { email } of list) if (email !== "" && !reachesInbox(inboxAddress, email)) yield email;
}

/** A thread that a send goes into while the guard holds; where it does not, `isMessageBarred` knows the commit's error. */
export interface ThreadEntry {
  threadId: string;
  guard: Guard;
}
