import { idFloor } from "../../core/ids.ts";
import type { Db } from "../engine/client.ts";
import { type Message, MESSAGES } from "../messages/messages.ts";
import { foldCase } from "../matching/folding.ts";
import type { MessageFilter } from "./message-filter.ts";
import { hasRecipient, hasText, recipientsOf } from "../search/search-terms.ts";

/** Returns those of the project's messages that exist. */
export function messagesWithIds(db: Db, senderId: string, ids: readonly string[]): Promise<Message[]> {
  return MESSAGES.all(db, "WHERE sender_id = ? AND id IN (SELECT value FROM json_each(?))", [
    senderId,
    JSON.stringify(ids),
  ]);
}

/** The filters for a message in memory, by the same rules as `message-filter` has for rows. */
const CHECKS: readonly ((message: Message, filter: MessageFilter) => boolean)[] = [
  ({ status }, filter) => filter.status === undefined || filter.status === status,
  ({ direction }, filter) => filter.direction === undefined || filter.direction === direction,
  ({ trust }, filter) => filter.trust === undefined || filter.trust === trust,
  ({ inboxId }, { inboxIds }) => inboxIds === undefined || inboxIds.includes(inboxId ?? ""),
  ({ id }, { after }) => after === undefined || id >= idFloor("msg", after),
  ({ id }, { before }) => before === undefined || id < idFloor("msg", before),
  ({ from }, filter) => filter.from === undefined || foldCase(from.email) === foldCase(filter.from),
  ({ tags }, { tag }) =>
    tag === undefined || tags.some(({ name, value }) => name === tag.name && value === tag.value),
  (message, { to }) => to === undefined || hasRecipient(message, to),
  (message, { q }) => q === undefined || hasText(message, q),
];

/** Returns true if a list with the filter has the message. */
export function matches(message: Message, filter: MessageFilter): boolean {
  return CHECKS.every((check) => check(message, filter));
}

/** Returns the key under which filters with this recipient are found. */
export function recipientKey(address: string): string {
  return foldCase(address);
}

/** Returns the keys of a message's recipients. */
export function recipientKeys(message: Message): Set<string> {
  return new Set(recipientsOf(message).map(({ email }) => foldCase(email)));
}
