import { timingSafeEqual } from "node:crypto";
import { decodeBase32, encodeBase32 } from "../core/ids.ts";

/** Bytes of the message id within a token. */
const ID_BYTES = 16;
/** Bytes of the recipient's number within a token. */
const ORD_BYTES = 2;
/** 96 bits: a forger would have to guess a token over SMTP. With id and number they fill 48 characters exactly. */
const TAG_BYTES = 12;
const TOKEN_BYTES = ID_BYTES + ORD_BYTES + TAG_BYTES;

/** Largest recipient number a token can hold. */
export const MAX_VERP_ORD = 0xffff;

/** Separates bounce addresses from those of inboxes. */
const PREFIX = "b+";

/** The recipient of a bounce address: the message's id and the recipient's number in it. */
export interface VerpRecipient {
  messageId: Uint8Array;
  ord: number;
}

function tag(key: Uint8Array, payload: Uint8Array): Buffer {
  return new Bun.CryptoHasher("sha256", key).update(payload).digest().subarray(0, TAG_BYTES);
}

/**
 * Returns the token that names one recipient of a message. Only a holder of the key can make one.
 * @param messageId the 16 bytes of a `msg_` id
 * @param ord the recipient's number, 0 to `MAX_VERP_ORD`
 * @throws RangeError for any other number, and for an id of another length
 */
export function encodeVerp(key: Uint8Array, messageId: Uint8Array, ord: number): string {
  if (messageId.length !== ID_BYTES) throw new RangeError("a message id has 16 bytes");
  if (!Number.isInteger(ord) || ord < 0 || ord > MAX_VERP_ORD)
    throw new RangeError(`a recipient's number is an integer from 0 to ${MAX_VERP_ORD}`);
  const payload = Buffer.alloc(ID_BYTES + ORD_BYTES);
  payload.set(messageId);
  payload.writeUInt16BE(ord, ID_BYTES);
  return encodeBase32(Buffer.concat([payload, tag(key, payload)]));
}

/** Returns the recipient of a token, in any case of letters; null if the token was not made with this key. */
export function decodeVerp(key: Uint8Array, token: string): VerpRecipient | null {
  const bytes = decodeBase32(token, TOKEN_BYTES);
  if (bytes === null) return null;
  const payload = Buffer.from(bytes.subarray(0, ID_BYTES + ORD_BYTES));
  if (!timingSafeEqual(bytes.subarray(ID_BYTES + ORD_BYTES), tag(key, payload))) return null;
  return { messageId: bytes.slice(0, ID_BYTES), ord: payload.readUInt16BE(ID_BYTES) };
}

/** Returns the return path that carries a token. */
export function verpAddress(token: string, domain: string): string {
  return `${PREFIX}${token}@${domain}`;
}

/** Returns the token in the local part of a bounce address; null for other local parts. */
export function verpToken(local: string): string | null {
  return local.toLowerCase().startsWith(PREFIX) ? local.slice(PREFIX.length) : null;
}

/**
 * Returns the token in a return path that a system on the way may have rewritten. Forwarders with SRS, and BATV, put their own text and a
 * "=" before the local part. The result may be longer than a local part should be.
 */
export function rewrittenVerpToken(path: string): string | null {
  const local = path.slice(0, Math.max(0, path.lastIndexOf("@")));
  return verpToken(local.slice(local.lastIndexOf("=") + 1));
}
