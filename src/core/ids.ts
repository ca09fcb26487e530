import { randomBytes } from "node:crypto";

/** Kinds of id, by their prefix on the wire. */
export type IdPrefix =
  | "acc"
  | "snd"
  | "key"
  | "msg"
  | "tpl"
  | "con"
  | "dom"
  | "inb"
  | "thr"
  | "sup"
  | "whk"
  | "evt"
  | "dlv"
  | "att"
  | "ins"
  | "req";

/** Crockford's base32, lower case: no i, l, o, u. Its order is byte order, so encoded ids sort as their bytes do. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const DIGITS = new Map([...ALPHABET].map((char, value) => [char, value]));

/** Characters that 128 bits take: 26 × 5 = 130, the first two bits zero. */
const ID_CHARS = 26;

/** The alphabet as octets, by the value of each. */
const DIGIT_OCTETS = Buffer.from(ALPHABET);
/** Bits of a digit. */
const DIGIT_BITS = 5;

/** Big-endian base32 of the bytes, padded with leading zero bits to a whole number of characters. */
export function encodeBase32(bytes: Uint8Array): string {
  const chars = Math.ceil((bytes.length * 8) / DIGIT_BITS);
  // A text grown character by character is a chain of pieces, which the first to read it puts together.
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

/** The bytes behind `encodeBase32`; null where the text is not such an encoding of `length` bytes. Case is folded. */
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

/** Milliseconds of which the last number is known: who takes the time for an id makes it within these. */
const TIMES_KNOWN = 1024;
/** Those milliseconds, each at its place, and the number of the last id made of each. */
const times: number[] = [];
const lastNumbers: number[] = [];

/**
 * A new id: prefix, `_`, and a UUIDv7 (RFC 9562 §5.7) in base32. Within a process, ids made later sort later
 * as long as their time does not go back, and those of one millisecond always do.
 * @param now milliseconds since the epoch
 */
export function newId(prefix: IdPrefix, now: number): string {
  const time = Math.floor(now);
  const bytes = Bun.randomUUIDv7("buffer", time);
  putNumber(bytes, nextNumber(time, bytes));
  return `${prefix}_${encodeBase32(bytes)}`;
}

/**
 * The number of the next id of a millisecond (RFC 9562 §6.2, method 1). Bun's own count is of the last millisecond asked
 * for: who took the time a while before the id has it begin anew, and an event would sort before the one it follows.
 */
function nextNumber(time: number, random: Uint8Array): number {
  const place = time % TIMES_KNOWN;
  const next = times[place] === time ? (lastNumbers[place] ?? 0) + 1 : numberIn(random);
  times[place] = time;
  lastNumbers[place] = next;
  return next;
}

/** The 26 bits behind time and version, the variant left out, but for the first one, which is room to count on. */
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

/** The 16 bytes of an id made by `newId`; null where `id` is none of that prefix. */
export function idBytes(prefix: IdPrefix, id: string): Uint8Array | null {
  if (!isId(prefix, id)) return null;
  return decodeBase32(id.slice(prefix.length + 1), 16);
}

/** The id of that prefix over 16 bytes: the inverse of `idBytes`. */
export function idFromBytes(prefix: IdPrefix, bytes: Uint8Array): string {
  return `${prefix}_${encodeBase32(bytes)}`;
}

/** Whether the text has the shape of an id of that prefix. */
export function isId(prefix: IdPrefix, text: string): boolean {
  return (
    text.length === prefix.length + 1 + ID_CHARS &&
    /^[a-z]{3}_[0-9a-z]{26}$/.test(text) &&
    text.startsWith(`${prefix}_`)
  );
}

/** Smallest id of that prefix whose time is `at` (milliseconds): bounds a range of ids by creation time. */
export function idFloor(prefix: IdPrefix, at: number): string {
  const bytes = new Uint8Array(16);
  const time = BigInt(Math.max(0, Math.floor(at)));
  for (let i = 0; i < 6; i++) bytes[i] = Number((time >> BigInt(8 * (5 - i))) & 255n);
  return `${prefix}_${encodeBase32(bytes)}`;
}

/** Sorts behind every id of that prefix: a walk from the newest id down begins there. */
export function idCeiling(prefix: IdPrefix): string {
  return `${prefix}~`;
}

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Uniformly random base62 text. Bytes of 248 and above are thrown away, so no character is likelier than another. */
export function randomBase62(length: number): string {
  let out = "";
  while (out.length < length) {
    for (const byte of randomBytes(length * 2)) {
      if (byte < 248 && out.length < length) out += BASE62[byte % 62];
    }
  }
  return out;
}
