import type { Key } from "../../core/crypto/key-ring.ts";
import { bounceDomain } from "../../core/own-names.ts";
import { type NamedRecipient, recipientOf, recipientToken } from "./recipient-token.ts";

/** Settings of the links by which a recipient unsubscribes. */
export interface UnsubscribeLinks {
  /** Address of the API as recipients see it, without a slash at its end. */
  publicUrl: string;
  /** Authenticates the tokens. A link that was not made here has no effect. */
  unsubscribeKey: Key;
  serviceDomain: string;
}

export const UNSUBSCRIBE_PATH = "/u/";
/** Start of the local part to which a message unsubscribes. */
const MAILBOX_PREFIX = "u+";
/** Maximum number of tokens that are tried in one List-Unsubscribe field. */
const MAX_TOKENS = 10;

/**
 * Returns the link of one recipient. If `ord` is null, returns the placeholder for each recipient's link in stored
 * content.
 */
export function unsubscribeUrl(
  links: Pick<UnsubscribeLinks, "publicUrl" | "unsubscribeKey">,
  messageId: string,
  ord: number | null,
): string {
  return `${links.publicUrl}${UNSUBSCRIBE_PATH}${lastSegment(links, messageId, ord)}`;
}

/** Returns the recipient's token. In stored content it is the message's id. */
function lastSegment(
  { unsubscribeKey }: Pick<UnsubscribeLinks, "unsubscribeKey">,
  messageId: string,
  ord: number | null,
): string {
  if (ord === null) return messageId;
  return recipientToken(unsubscribeKey, { messageId, ord });
}

/** In inline content, this is replaced by each recipient's own link. */
export const LINK_VARIABLE = "{{unsubscribeUrl}}";
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

/**
 * Returns the header fields of one-click unsubscribing (RFC 8058 §3.1), with an address for programs that only know RFC
 * 2369. It is at the domain of return paths, because the domain of From may not receive.
 */
export function unsubscribeHeaders(
  links: UnsubscribeLinks,
  messageId: string,
  ord: number | null,
): [string, string][] {
  const token = lastSegment(links, messageId, ord);
  const address = `${MAILBOX_PREFIX}${token}@${bounceDomain(links.serviceDomain)}`;
  return [
    [
      "List-Unsubscribe",
      `<${unsubscribeUrl(links, messageId, ord)}>, <mailto:${address}?subject=unsubscribe>`,
    ],
    ["List-Unsubscribe-Post", "List-Unsubscribe=One-Click"],
  ];
}

/** Returns the recipient that a message to an address unsubscribes, by its local part; null for other addresses. */
export function unsubscribedByMail(key: Key, local: string): NamedRecipient | null {
  const isOurs = local.toLowerCase().startsWith(MAILBOX_PREFIX);
  return isOurs ? recipientOf(key, local.slice(MAILBOX_PREFIX.length)) : null;
}

/** Returns the recipient named in a List-Unsubscribe field that a report quotes; null if no token in it was made here. */
export function namedInListUnsubscribe(key: Key, value: string): NamedRecipient | null {
  for (const [, token = ""] of value.matchAll(/(?:\/u\/|u\+)([0-9a-z]+)/gi).take(MAX_TOKENS)) {
    const named = recipientOf(key, token);
    if (named !== null) return named;
  }
  return null;
}
