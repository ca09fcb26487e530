import { type Key, makingKey, opened } from "../../core/crypto/key-ring.ts";
import { idBytes, idFromBytes } from "../../core/ids.ts";
import { decodeVerp, encodeVerp } from "../../mail/verp.ts";

export interface NamedRecipient {
  messageId: string;
  ord: number;
}

/** Returns a token that names one recipient of a message. Only the key's holder can make it. */
export function recipientToken(key: Key, { messageId, ord }: NamedRecipient): string {
  const bytes = idBytes("msg", messageId);
  if (bytes === null) throw new Error(`not a message id: ${messageId}`);
  return encodeVerp(makingKey(key), bytes, ord);
}

/** Returns the recipient of a token, in any case of letters, or null if it was not made with the key. */
export function recipientOf(key: Key, token: string): NamedRecipient | null {
  const named = opened(key, (one) => decodeVerp(one, token));
  return named === null ? null : { messageId: idFromBytes("msg", named.messageId), ord: named.ord };
}

/** A token in the local part of a return path (`b+`) or of an address to unsubscribe (`u+`), valid or not. */
const TOKEN_FORM = /^[bu]\+[0-9a-z]{48}$/i;

/** Returns whether a local part looks like one that a token of ours is in. */
export function hasTokenForm(local: string): boolean {
  return TOKEN_FORM.test(local);
}
