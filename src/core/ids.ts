import { randomBytes } from "node:crypto";

/** Kinds of id, by their prefix on the wire. */
export type IdPrefix =
  | "acc"
  | "snd"
  | "key"
  | "msg"
  | "tpl"
  | "con"
  | "prp"
  | "top"
  | "seg"
  | "bro"
  | "dom"
  | "inb"
  | "thr"
  | "sup"
  | "whk"
  | "evt"
  | "dlv"
  | "att"
  | "ins"
  | "req"
  | "rec"
  | "rte"
  | "rpt"
  | "era"
  | "imp"
  | "mem"
  | "ses"
  | "ntc"
  | "rul"
  | "lse"
  | "fwd"
  | "not"
  | "drf";

/**
 * Crockford's base32 in lower case, without i, l, o and u. Encoded ids sort as their bytes do, because its order is
 * byte order.
 */
export const ID_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
const DIGITS = new Map([...ID_DIGITS].map((char, value) => [char, value]));

/** Characters for 128 bits: 26 × 5 = 130, of which the first two bits are zero. */
const ID_CHARS = 26;

/** The alphabet as bytes. */
const DIGIT_OCTETS = Buffer.from(ID_DIGITS);
const DIGIT_BITS = 5;

/** Big-endian base32 of the bytes, padded with leading zero bits to a whole number of characters. */
export function encodeBase32(bytes: Uint8Array): string {
  const chars = Math.ceil((bytes.length * 8) / DIGIT_BITS);
  // Writing to a buffer is faster than growing a string character by character.
  const out = Buffer.allocUnsafe(chars);
  let bits = chars * DIGIT_BITS - bytes.length * 8;
  let buffer = 0;
  let next = 0;
  for (let at = 0; at < bytes.length; at++) {
    buffer = (buffer << 8) | (bytes[at] ?? 0);
    bits += 8;
    while (bits >= DIGIT_BITS) {
      bits -= DIGIT_BITS;
      out[next++] = DIGIT_OCTETS[(buffer >> bits) & 31] ?? 0;
      buffer &= (1 << bits) - 1;
    }
  }
  return out.toString("latin1");
}

/**
 * Decodes the result of `encodeBase32`, in any case. Returns null if the text does not encode `length` bytes.
 */
export function decodeBase32(text: string, length: number): Uint8Array | null {
  if (text.length !== Math.ceil((length * 8) / DIGIT_BITS)) return null;
  const out = new Uint8Array(length);
  let pad = text.length * DIGIT_BITS - length * 8;
  let buffer = 0;
  let bits = 0;
  let at = 0;
  for (const char of text.toLowerCase()) {
    const value = DIGITS.get(char);
    if (value === undefined) return null;
    buffer = (buffer << DIGIT_BITS) | value;
    bits += DIGIT_BITS;
    if (pad > 0) {
      if (buffer >> (bits - pad) !== 0) return null;
      bits -= pad;
      buffer &= (1 << bits) - 1;
      pad = 0;
    }
    if (bits >= 8) {
      bits -= 8;
      out[at++] = (buffer >> bits) & 255;
      buffer &= (1 << bits) - 1;
    }
  }
  return out;
}

/**
 * Milliseconds for which the last number is kept. If an id is made later than that after reading its time, the
 * numbers start again.
 */
const TIMES_KNOWN = 1024;
/** For each of those milliseconds, the time and the number of the last id. */
const times: number[] = [];
const lastNumbers: number[] = [];

/**
 * Returns a new id: prefix, `_`, and a UUIDv7 (RFC 9562 §5.7) in base32. Within a process, later ids sort later if
 * the time does not go back. Ids of one millisecond always sort in the order of their making.
 * @param now milliseconds since the epoch
 */
export function newId(prefix: IdPrefix, now: number): string {
  const time = Math.floor(now);
  const bytes = Bun.randomUUIDv7("buffer", time);
  putNumber(bytes, nextNumber(time, bytes));
  return `${prefix}_${encodeBase32(bytes)}`;
}

/**
 * Returns the number of the next id of a millisecond (RFC 9562 §6.2, method 1). Bun counts only for the last
 * millisecond it was given. If a caller reads the time early, Bun would start again, and an event would sort before
 * the one it follows.
 */
function nextNumber(time: number, random: Uint8Array): number {
  const place = time % TIMES_KNOWN;
  const next = times[place] === time ? (lastNumbers[place] ?? 0) + 1 : numberIn(random);
  times[place] = time;
  lastNumbers[place] = next;
  return next;
}

/**
 * Returns the 26 bits after time and version, without the variant. The first bit is zero, which leaves room for
 * counting.
 */
function numberIn(bytes: Uint8Array): number {
  const at = (index: number): number => bytes[index] ?? 0;
  return ((at(6) & 7) << 22) | (at(7) << 14) | ((at(8) & 63) << 8) | at(9);
}

function putNumber(bytes: Uint8Array, number: number): void {
  bytes[6] = 0x70 | (number >> 22);
  bytes[7] = (number >> 14) & 255;
  bytes[8] = 0x80 | ((number >> 8) & 63);
  bytes[9] = number & 255;
}

/** Returns the 16 bytes of an id made by `newId`, or null if `id` does not have that prefix and shape. */
export function idBytes(prefix: IdPrefix, id: string): Uint8Array | null {
  if (!isId(prefix, id)) return null;
  return decodeBase32(id.slice(prefix.length + 1), 16);
}

/** Returns the id with that prefix and those 16 bytes. It is the inverse of `idBytes`. */
export function idFromBytes(prefix: IdPrefix, bytes: Uint8Array): string {
  return `${prefix}_${encodeBase32(bytes)}`;
}

/** Returns whether the text has the shape of an id with that prefix. */
export function isId(prefix: IdPrefix, text: string): boolean {
  return (
    text.length === prefix.length + 1 + ID_CHARS &&
    /^[a-z]{3}_[0-9a-z]{26}$/.test(text) &&
    text.startsWith(`${prefix}_`)
  );
}

/** Returns the smallest id with that prefix and time (milliseconds). It bounds a range of ids by creation time. */
export function idFloor(prefix: IdPrefix, at: number): string {
  const bytes = new Uint8Array(16);
  const time = BigInt(Math.max(0, Math.floor(at)));
  for (let i = 0; i < 6; i++) bytes[i] = Number((time >> BigInt(8 * (5 - i))) & 255n);
  return `${prefix}_${encodeBase32(bytes)}`;
}

/**
 * Returns a string that sorts after every id with that prefix. A walk from the newest id down begins there.
 */
export function idCeiling(prefix: IdPrefix): string {
  return `${prefix}~`;
}

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/**
 * Returns uniformly random base62 text. Bytes of 248 and above are dropped, so that all characters are equally
 * likely.
 */
export function randomBase62(length: number): string {
  let out = "";
  while (out.length < length) {
    for (const byte of randomBytes(length * 2)) {
      if (byte < 248 && out.length < length) out += BASE62[byte % 62];
    }
  }
  return out;
}

/** A range of ids, of which the first `limit` are read. */
export interface IdRange {
  /** Ids come after this one, */
  after: string;
  /** and before this one. */
  below: string;
  limit: number;
}
