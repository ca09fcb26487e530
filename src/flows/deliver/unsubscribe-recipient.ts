import type { Key } from "../../core/crypto/key-ring.ts";
import { addressKey } from "../../core/addresses.ts";
import { newId } from "../../core/ids.ts";
import type { UnsubscribeWay } from "../../core/messages/events.ts";
import { findRecipient, type Recipient } from "../../store/messages/recipients.ts";
import { notLeftGuard, topicOfMessage } from "../../store/audience/topics.ts";
import {
  type Contact,
  leaveTopic,
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

/**
 * Unsubscribes the recipient's contact, which is created if there is none, and announces it in the same write. If the message
 * has a topic, the contact leaves that alone. A second call changes nothing.
 * @param ip the address from which the person acted, if it is known
 */
export async function unsubscribeRecipient(
  deps: Pick<UnsubscribeDeps, "db" | "clock" | "queue">,
  { messageId, senderId, email }: Recipient,
  how: UnsubscribeWay,
  ip: string | null = null,
): Promise<void> {
  const now = deps.clock.now();
  const emailKey = addressKey(email);
  const topicId = await topicOfMessage(deps.db, messageId);
  const left = topicId === null ? {} : { topicId };
  const draft = { messageId, type: "unsubscribed", email, data: { unsubscribed: { how, ...left } } } as const;
  const guard =
    topicId === null ? notUnsubscribedGuard(senderId, emailKey) : notLeftGuard(senderId, emailKey, topicId);
  const announced = await announce(deps, senderId, [draft], guard);
  const entry = { at: now, subscribed: false, how, ...(ip === null ? {} : { ip }), ...left };
  const contact: Contact = {
    id: newId("con", now),
    senderId,
    email,
    emailKey,
    firstName: null,
    lastName: null,
    metadata: {},
    properties: {},
    topics: {},
    consent: [entry],
    subscribed: true,
    unsubscribedAt: null,
    createdAt: now,
    updatedAt: now,
  };
  const leaving = topicId === null ? unsubscribeAddress(contact) : leaveTopic(contact, topicId);
  await writeAnnounced(deps, announced, { after: [leaving] });
}
