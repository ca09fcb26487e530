import { addressKey } from "../../core/addresses.ts";
import type { Clock } from "../../core/time/clock.ts";
import { newId } from "../../core/ids.ts";
import type { Db } from "../../store/engine/client.ts";
import { unsubscribeAddress } from "../../store/projects/contacts.ts";
import { findRecipient, type Recipient } from "../../store/messages/recipients.ts";
import { recipientOf, recipientToken } from "./recipient-token.ts";

/** Settings of the links by which a recipient unsubscribes. */
export interface UnsubscribeLinks {
  /** Address of the API as recipients see it, without a slash at its end. */
  publicUrl: string;
  /** Authenticates the tokens. A link that was not made here has no effect. */
  unsubscribeKey: Uint8Array;
}

export const UNSUBSCRIBE_PATH = "/u/";

/**
 * Returns the link of one recipient. If `ord` is null, returns the placeholder for each recipient's link in stored
 * content.
 */
export function unsubscribeUrl(links: UnsubscribeLinks, messageId: string, ord: number | null): string {
  return `${links.publicUrl}${UNSUBSCRIBE_PATH}${lastSegment(links, messageId, ord)}`;
}

/** Returns the recipient's token. In stored content it is the message's id. */
function lastSegment({ unsubscribeKey }: UnsubscribeLinks, messageId: string, ord: number | null): string {
  if (ord === null) return messageId;
  return recipientToken(unsubscribeKey, { messageId, ord });
}

/** The merge variable in content that was given inline. Nothing else in it is a placeholder. */
const INLINE_VARIABLE = /\{\{-?\s*unsubscribeUrl\s*-?\}\}/g;

/**
 * Replaces the placeholder of a template's link, and the merge variable of inline content, by the recipient's own link.
 * The placeholder is known by the message's id, which is in nothing else, because the id is made after the content. The
 * text around it may be escaped, or encoded by a filter as part of another link.
 */
export function withUnsubscribeUrl(
  links: UnsubscribeLinks,
  messageId: string,
  ord: number | null,
  part: string,
): string {
  return part
    .replaceAll(messageId, lastSegment(links, messageId, ord))
    .replace(INLINE_VARIABLE, () => unsubscribeUrl(links, messageId, ord));
}

/** Returns the header fields of one-click unsubscribing (RFC 8058 §3.1). */
export function unsubscribeHeaders(
  links: UnsubscribeLinks,
  messageId: string,
  ord: number | null,
): [string, string][] {
  return [
    ["List-Unsubscribe", `<${unsubscribeUrl(links, messageId, ord)}>`],
    ["List-Unsubscribe-Post", "List-Unsubscribe=One-Click"],
  ];
}

export interface UnsubscribeDeps extends UnsubscribeLinks {
  db: Db;
  clock: Clock;
}

/** Returns the recipient whose link has that token, or null if it was not made here. */
export async function recipientOfToken(deps: UnsubscribeDeps, token: string): Promise<Recipient | null> {
  const named = recipientOf(deps.unsubscribeKey, token);
  return named === null ? null : findRecipient(deps.db, named.messageId, named.ord);
}

/** Unsubscribes the recipient's contact, which is created if there is none. A second call changes nothing. */
export async function unsubscribeRecipient(deps: UnsubscribeDeps, recipient: Recipient): Promise<void> {
  const now = deps.clock.now();
  const { senderId, email } = recipient;
  const contact = unsubscribeAddress({
    id: newId("con", now),
    senderId,
    email,
    emailKey: addressKey(email),
    firstName: null,
    lastName: null,
    subscribed: false,
    unsubscribedAt: now,
    metadata: {},
    createdAt: now,
    updatedAt: now,
  });
  await deps.db.write([contact]);
}
