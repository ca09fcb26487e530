import { catchAllOf, isCatchAll } from "../../core/addresses.ts";
import { AppError } from "../../core/errors.ts";
import type { Db } from "../../store/engine/client.ts";
import { envelopeRecipients } from "../../store/messages/message-content.ts";
import type { Message } from "../../store/messages/messages.ts";
import { inboxAddressOf } from "./threading.ts";

type Parent = Pick<Message, "id" | "senderId" | "direction" | "from" | "to" | "cc">;

/** Returns the addresses of a catch-all inbox that a message was written to or sent from; none for other inboxes. */
export async function usedAddresses(db: Db, inboxAddress: string, parent: Parent): Promise<string[]> {
  if (!isCatchAll(inboxAddress)) return [];
  if (parent.direction === "outbound") return [parent.from.email];
  const written = await envelopeRecipients(db, parent.senderId, [parent.id]);
  const recipients = written.get(parent.id);
  if (recipients !== undefined) return recipients;
  const named = [...parent.to, ...parent.cc].map(({ email }) => email);
  return named.filter((email) => catchAllOf(inboxAddressOf(email)) === inboxAddress);
}

/**
 * Returns the address that answers a message: the inbox's, or for a catch-all the one that was written to. Of several, the header's
 * comes first, because an answer must not reveal a recipient in Bcc.
 * @param used see `usedAddresses`
 * @throws AppError 409 if a catch-all no longer knows the address
 */
export function answeredFrom(inboxAddress: string, { to, cc }: Parent, used: readonly string[]): string {
  if (!isCatchAll(inboxAddress)) return inboxAddress;
  const named = new Set([...to, ...cc].map(({ email }) => inboxAddressOf(email)));
  const address = used.find((email) => named.has(inboxAddressOf(email))) ?? used[0];
  if (address !== undefined) return address;
  throw new AppError(
    "conflict",
    "It is no longer known which address of the catch-all the message was written to. Answer with POST /v1/emails.",
    { code: "invalid_state" },
  );
}
