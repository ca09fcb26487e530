import type { Key } from "../../core/crypto/key-ring.ts";
import type { Consent } from "../../core/audience/consent.ts";
import { addressKey } from "../../core/addresses.ts";
import { newId } from "../../core/ids.ts";
import type { UnsubscribeWay } from "../../core/messages/events.ts";
import { findRecipient, type Recipient } from "../../store/messages/recipients.ts";
import { notLeftGuard, topicOfMessage } from "../../store/audience/topics.ts";
import {
  type Contact,
  NOT_ENGAGED,
  setChoice,
  notUnsubscribedGuard,
  unsubscribeAddress,
} from "../../store/projects/contacts.ts";
import { recipientOf } from "../mime/recipient-token.ts";
import { announce, writeAnnounced } from "../webhooks/announce.ts";
import type { Outbox } from "../outbox.ts";

export interface UnsubscribeDeps extends Outbox {
  /** Authenticates the tokens of unsubscribe links. */
  unsubscribeKey: Key;
}

/** Returns the recipient whose link has that token, or null if it was not made here. */
export async function recipientOfToken(
  { db, unsubscribeKey }: Pick<UnsubscribeDeps, "db" | "unsubscribeKey">,
  token: string,
): Promise<Recipient | null> {
  const named = recipientOf(unsubscribeKey, token);
  return named === null ? null : findRecipient(db, named.messageId, named.ord);
}

/** How a recipient leaves. */
export interface Leaving {
  how: UnsubscribeWay;
  /** The address from which the person acted; null or left out if it is not known. */
  ip?: string | null;
  /** The topic that they leave; null: everything. If left out, the topic of the message, or everything if it has none. */
  topicId?: string | null | undefined;
}

/**
 * Unsubscribes the recipient's contact, which is created if there is none, and announces it in the same write. A second
 * call changes nothing.
 */
export async function unsubscribeRecipient(
  deps: Pick<UnsubscribeDeps, "db" | "clock" | "queue">,
  { messageId, senderId, email }: Recipient,
  { how, ip = null, topicId: wanted }: Leaving,
): Promise<void> {
  const topicId = wanted === undefined ? await topicOfMessage(deps.db, messageId) : wanted;
  const left = topicId === null ? {} : { topicId };
  const draft = { messageId, type: "unsubscribed", email, data: { unsubscribed: { how, ...left } } } as const;
  const emailKey = addressKey(email);
  const guard =
    topicId === null ? notUnsubscribedGuard(senderId, emailKey) : notLeftGuard(senderId, emailKey, topicId);
  const announced = await announce(deps, senderId, [draft], guard);
  const entry = { at: deps.clock.now(), subscribed: false, how, ...(ip === null ? {} : { ip }), ...left };
  const contact = strangerContact(senderId, email, entry);
  const leaving = topicId === null ? unsubscribeAddress(contact) : setChoice(contact, topicId, 0);
  await writeAnnounced(deps, announced, { after: [leaving] });
}

/** Returns the contact that is stored if a recipient chooses who is none yet, with the entry of that choice. */
export function strangerContact(senderId: string, email: string, entry: Consent): Contact {
  return {
    id: newId("con", entry.at),
    senderId,
    email,
    emailKey: addressKey(email),
    firstName: null,
    lastName: null,
    metadata: {},
    properties: {},
    topics: {},
    consent: [entry],
    ...NOT_ENGAGED,
    subscribed: true,
    unsubscribedAt: null,
    createdAt: entry.at,
    updatedAt: entry.at,
  };
}
