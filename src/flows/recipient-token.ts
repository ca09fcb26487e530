import { idBytes, idFromBytes } from "../core/ids.ts";
import { decodeVerp, encodeVerp } from "../mail/verp.ts";

/** The recipient that a token names. */
export interface NamedRecipient {
  messageId: string;
  ord: number;
}

/** A token that names one recipient of a message and that only the key's holder can make. */
export function recipientToken(key: Uint8Array, { messageId, ord }: NamedRecipient): string {
  const bytes = idBytes("msg", messageId);
  if (bytes === null) throw new Error(`not a message id: ${messageId}`);
  return encodeVerp(key, bytes, ord);
}

/** The recipient behind a token, in any case of letters; null for one that was not made with the key. */
export function recipientOf(key: Uint8Array, token: string): NamedRecipient | null {
  const named = decodeVerp(key, token);
  return named === null ? null : { messageId: idFromBytes("msg", named.messageId), ord: named.ord };
}
