import { sharedMessageId } from "../../core/messages/message-id.ts";
import { DAY_MS } from "../../core/time/units.ts";
import { type ArrivalFacts, arrivalFacts, type EarlierArrival } from "../../store/messages/arrivals.ts";
import type { Db, Store } from "../../store/engine/client.ts";
import type { InboxRef } from "../../store/messages/sending.ts";
import type { ReadMail } from "../mime/inspect.ts";
import { type RoleMailbox, roleFacts } from "./role-mailbox.ts";
import { projectKey } from "../../store/sql/content-values.ts";
import { messagesOfRaw } from "../../store/messages/message-content.ts";

/**
 * Time within which the same bytes are a duplicate, milliseconds. A sender that did not see our 250 repeats the message
 * (RFC 1047), usually within minutes, but after an outage hours later.
 */
export const DUPLICATE_WINDOW_MS = DAY_MS;
/** Maximum number of messages with the same Message-ID that are compared, newest first. */
export const MAX_COMPARED = 5;

/** Reads what the database knows about a message for an inbox; null if the inbox is gone. @param asNew see `StoreAsNew` */
export function arrivalFactsOf(
  { db, clock }: Store,
  inbox: InboxRef,
  mail: ReadMail,
  asNew = false,
): Promise<ArrivalFacts | null> {
  return arrivalFacts(db, inbox, {
    rfcMessageId: mail.messageId,
    related: relatedMessageIds(mail),
    since: clock.now() - DUPLICATE_WINDOW_MS,
    limit: MAX_COMPARED,
    asNew,
  });
}

/** Reads the facts of a message for an inbox or a role mailbox; null if the inbox is gone. */
export function factsFor(
  deps: Store,
  inbox: InboxRef | RoleMailbox,
  mail: ReadMail,
  asNew: boolean,
): Promise<ArrivalFacts | null> {
  return inbox.id === null ? roleFacts(deps.db, inbox) : arrivalFactsOf(deps, inbox, mail, asNew);
}

/**
 * Returns the Message-IDs by which the thread is found, the nearest parent last. The message's own id ranks lowest. It is
 * known if this is a copy, or if a reply arrived first.
 */
export function relatedMessageIds(mail: ReadMail): string[] {
  const references = referencedMessageIds(mail);
  return mail.messageId === null ? references : [sharedMessageId(mail.messageId), ...references];
}

/** Returns the Message-IDs that a message refers to. The one that it replies to is last. */
export function referencedMessageIds({ references, inReplyTo }: ReadMail): string[] {
  return (inReplyTo === null ? references : [...references, inReplyTo]).map(sharedMessageId);
}

/**
 * Finds an earlier copy of a message in its inbox, with the same Message-ID and the same bytes below our trace fields. If
 * a person sends a message again, its bytes differ.
 * @param digest SHA-256 of the bytes
 */
export async function findDuplicate(
  db: Db,
  { senderId }: { senderId: string },
  { earlier }: ArrivalFacts,
  digest: Uint8Array,
): Promise<EarlierArrival | null> {
  if (earlier.length === 0) return null;
  const ids = earlier.map(({ messageId }) => messageId);
  const same = await messagesOfRaw(db, senderId, ids, projectKey(senderId, digest));
  return earlier.find(({ messageId }) => same.has(messageId)) ?? null;
}
