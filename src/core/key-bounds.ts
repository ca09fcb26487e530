import { keyOfAddress, normalizeDomain } from "./addresses.ts";

/** How far a key may go, in addition to its scopes. It makes keys safe for agents. */
export interface KeyBounds {
  /** Addresses and domains (`@example.com`) that the key may send to, as `recipientRule` writes them. Null: all. */
  allowRecipients: readonly string[] | null;
  /** True if each send waits until another key approves it. */
  approval: boolean;
  /** The only inboxes whose mail the key sees and answers. It does nothing else. Null: no such limit. */
  inboxIds: readonly string[] | null;
}

export const UNBOUND: KeyBounds = { allowRecipients: null, approval: false, inboxIds: null };

/** Maximum number of entries in `allowRecipients`. */
export const MAX_ALLOWED_RECIPIENTS = 100;

/** Returns an entry of `allowRecipients` in the form that is compared; null if it is neither an address nor `@domain`. */
export function recipientRule(text: string): string | null {
  if (text.startsWith("@")) {
    const domain = normalizeDomain(text.slice(1));
    return domain === null ? null : `@${domain}`;
  }
  return keyOfAddress(text);
}

/** Returns whether the rules let a key send to an address key. `@example.com` means that very domain. */
export function allowsRecipient({ allowRecipients }: KeyBounds, key: string): boolean {
  if (allowRecipients === null) return true;
  return allowRecipients.includes(key) || allowRecipients.includes(key.slice(key.lastIndexOf("@")));
}

/** Maximum number of inboxes of a key. */
export const MAX_KEY_INBOXES = 100;

/** Returns whether a key sees an inbox. */
export function withinInboxes({ inboxIds }: Pick<KeyBounds, "inboxIds">, id: string): boolean {
  return inboxIds === null || inboxIds.includes(id);
}

/** Returns whether every send that `inner` lets through is one that `outer` lets through as well. */
export function isWithinBounds(outer: KeyBounds, inner: KeyBounds): boolean {
  if (outer.approval && !inner.approval) return false;
  if (outer.inboxIds !== null && !(inner.inboxIds?.every((id) => withinInboxes(outer, id)) ?? false))
    return false;
  if (outer.allowRecipients === null) return true;
  return inner.allowRecipients?.every((rule) => allowsRecipient(outer, rule)) ?? false;
}
