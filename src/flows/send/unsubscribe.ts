import { addressKey } from "../../core/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import { newId } from "../../core/ids.ts";
import type { Db } from "../../store/engine/client.ts";
import { unsubscribeAddress } from "../../store/contacts.ts";
import { findRecipient, type Recipient } from "../../store/recipients.ts";
import { recipientOf, recipientToken } from "../recipient-token.ts";

/** What makes links by which a recipient unsubscribes. */
export interface UnsubscribeLinks {
  /** Address of the API as recipients see it, without a slash at its end. */
  publicUrl: string;
  /** Authenticates the tokens: a link that was not made here unsubscribes nobody. */
  unsubscribeKey: Uint8Array;
}

/** Path under which the links lie. */
export const UNSUBSCRIBE_PATH = "/u/";

/** The link of one recipient of a message; null: the one that stands for each recipient's in stored content. */
export function unsubscribeUrl(links: UnsubscribeLinks, messageId: string, ord: number | null): string {
  return `${links.publicUrl}${UNSUBSCRIBE_PATH}${lastSegment(links, messageId, ord)}`;
}

/** The recipient's token; the message's id stands for it in stored content. */
function lastSegment({ unsubscribeKey }: UnsubscribeLinks, messageId: string, ord: number | null): string {
  if (ord === null) return messageId;
  return recipientToken(unsubscribeKey, { messageId, ord });
}

/** The merge variable in content that was given inline. Nothing else in such content is a placeholder. */
const INLINE_VARIABLE = /\{\{-?\s*unsubscribeUrl\s*-?\}\}/g;

/**
 * The content with the recipient's own link in place of the one that a template has put for everybody's, and of the merge
 * variable in inline content. The first is known by the message's id, which stands in nothing else: it is made after the
 * content. What stands around it may be escaped, or encoded by a filter as part of another link.
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

/** The header fields of one-click unsubscribing (RFC 8058 §3.1). */
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

/** The recipient whose link has that token; null for a token that is none of ours. */
export async function recipientOfToken(deps: UnsubscribeDeps, token: string): Promise<Recipient | null> {
  const named = recipientOf(deps.unsubscribeKey, token);
  return named === null ? null : findRecipient(deps.db, named.messageId, named.ord);
}

/** Unsubscribes the contact of the recipient, who becomes one where there is none. Again changes nothing. */
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
