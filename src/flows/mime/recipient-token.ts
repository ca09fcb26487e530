import { idBytes, idFromBytes } from "../../core/ids.ts";
import { decodeVerp, encodeVerp } from "../../mail/verp.ts";

export interface NamedRecipient {
  messageId: string;
  ord: number;
}

/** Returns a token that names one recipient of a message. Only the key's holder can make it. */
export function recipientToken(key: Uint8Array, { messageId, ord }: NamedRecipient): string {
  const bytes = idBytes("msg", messageId);
  if (bytes === null) throw new Error(`not a message id: ${messageId}`);
  return encodeVerp(key, bytes, ord);
}

/** Returns the recipient of a token, in any case of letters, or null if it was not made with the key. */
export function recipientOf(key: Uint8Array, token: string): NamedRecipient | null {
  const named = decodeVerp(key, token);
  return named === null ? null : { messageId: idFromBytes("msg", named.messageId), ord: named.ord };
}
