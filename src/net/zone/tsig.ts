import { createHmac, timingSafeEqual } from "node:crypto";

/** A key that we share with another name server (RFC 8945). Its algorithm is HMAC-SHA256. */
export interface TsigKey {
  /** Lower case, without final dot. */
  name: string;
  secret: Uint8Array;
}

/** A TSIG record, and the message that it signs. */
export interface Signature {
  keyName: string;
  algorithm: string;
  /** Seconds since the epoch. */
  signedAt: number;
  /** Seconds by which the clocks may differ. */
  fudge: number;
  mac: Buffer;
  originalId: number;
  error: number;
  other: Buffer;
  /** The message without the record, as its sender signed it. */
  message: Buffer;
}

/** RFC 8945 §3: errors of a signature. */
export const TSIG_ERROR = { badSignature: 16, badKey: 17, badTime: 18, badTruncation: 22 } as const;

/** Result of the check of a signature. If `key` is there, the answer is signed with it. */
export interface Verdict {
  error: (typeof TSIG_ERROR)[keyof typeof TSIG_ERROR] | 0;
  key: TsigKey | null;
}

export const TSIG_TYPE = 250;
const CLASS_ANY = 255;
const ALGORITHM = "hmac-sha256";
const MAC_OCTETS = 32;
/** RFC 8945 §5.2.2.1: a shorter MAC is malformed. */
const MIN_MAC_OCTETS = 16;
/** RFC 8945 §10: the recommended one. */
const FUDGE_SECONDS = 300;
const TIME_OCTETS = 6;
/** Octets after the name of a record: type, class, TTL and data length. */
const RECORD_TAIL_OCTETS = 10;
/** Octets of the data after the algorithm and without MAC and other data. */
const DATA_OCTETS = 16;
const ADDITIONAL_COUNT_AT = 10;
/** RFC 1035 §2.3.4. */
const MAX_LABEL_OCTETS = 63;
const MAX_NAME_OCTETS = 255;
/** Characters of a label. Keys and algorithms have no others. */
const LABEL = /^[\x21-\x2d\x2f-\x5b\x5d-\x7e]+$/;

/** Returns the octets that the signature of a message takes at most. */
export function signatureOctets({ name }: TsigKey): number {
  const fixed = RECORD_TAIL_OCTETS + DATA_OCTETS + MAC_OCTETS + TIME_OCTETS;
  return nameOctets(name).length + nameOctets(ALGORITHM).length + fixed;
}

/** Encodes a name without compression. */
export function nameOctets(name: string): Buffer {
  const labels = name === "" ? [] : name.split(".");
  return Buffer.concat([
    ...labels.flatMap((label) => [Buffer.of(label.length), Buffer.from(label, "latin1")]),
    Buffer.of(0),
  ]);
}

/** Reads a name without pointers, in lower case. Returns null if it is none. */
function readName(packet: Buffer, start: number): { name: string; end: number } | null {
  const labels: string[] = [];
  let at = start;
  for (let length = packet[at]; length !== 0; length = packet[at]) {
    if (length === undefined || length > MAX_LABEL_OCTETS || at - start > MAX_NAME_OCTETS) return null;
    const label = packet.toString("latin1", at + 1, at + 1 + length);
    if (!LABEL.test(label)) return null;
    labels.push(label);
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), end: at + 1 };
}

/**
 * Reads the TSIG record at `start`, the last of the packet (RFC 8945 §4.2).
 * @param end index after the record
 * @returns null if it is malformed
 */
export function readSignature(packet: Buffer, start: number, end: number): Signature | null {
  const key = readName(packet, start);
  const algorithm = key === null ? null : readName(packet, key.end + RECORD_TAIL_OCTETS);
  if (key === null || algorithm === null || algorithm.end + DATA_OCTETS > end) return null;
  if (packet.readUInt16BE(key.end + 2) !== CLASS_ANY || packet.readUInt32BE(key.end + 4) !== 0) return null;
  const macAt = algorithm.end + TIME_OCTETS + 4;
  const macEnd = macAt + packet.readUInt16BE(macAt - 2);
  if (macEnd + 6 > end || macEnd + 6 + packet.readUInt16BE(macEnd + 4) !== end) return null;
  const originalId = packet.readUInt16BE(macEnd);
  const message = Buffer.from(packet.subarray(0, start));
  message.writeUInt16BE(originalId, 0);
  message.writeUInt16BE(packet.readUInt16BE(ADDITIONAL_COUNT_AT) - 1, ADDITIONAL_COUNT_AT);
  return {
    keyName: key.name,
    algorithm: algorithm.name,
    originalId,
    message,
    signedAt: packet.readUIntBE(algorithm.end, TIME_OCTETS),
    fudge: packet.readUInt16BE(macAt - 4),
    mac: Buffer.from(packet.subarray(macAt, macEnd)),
    error: packet.readUInt16BE(macEnd + 2),
    other: Buffer.from(packet.subarray(macEnd + 6, end)),
  };
}

/**
 * Checks a signature in the order of RFC 8945 §5.2: key, MAC, time.
 * @param now seconds since the epoch
 * @param requestMac of the query, if this is the answer to one
 */
export function verify(
  keys: readonly TsigKey[],
  signature: Signature,
  now: number,
  requestMac: Buffer | null = null,
): Verdict {
  const { keyName, algorithm, mac, message, signedAt, fudge } = signature;
  const key = keys.find(({ name }) => name === keyName);
  if (key === undefined || algorithm !== ALGORITHM) return { error: TSIG_ERROR.badKey, key: null };
  if (mac.length >= MIN_MAC_OCTETS && mac.length < MAC_OCTETS)
    return { error: TSIG_ERROR.badTruncation, key: null };
  const wanted = macOf(key, [sized(requestMac), message, variables(signature)]);
  if (mac.length !== MAC_OCTETS || !timingSafeEqual(mac, wanted))
    return { error: TSIG_ERROR.badSignature, key: null };
  return { error: Math.abs(now - signedAt) > fudge ? TSIG_ERROR.badTime : 0, key };
}

/** Signs a query of ours (RFC 8945 §5.1). */
export function signQuery(message: Buffer, key: TsigKey, now: number): { octets: Buffer; mac: Buffer } {
  return sign({ message, key, signedAt: now, before: null });
}

/** Signs the answer to a query. If the query's key or MAC is wrong, adds only the error (RFC 8945 §5.2). */
export function signAnswer(message: Buffer, query: Signature, verdict: Verdict, now: number): Buffer {
  const { error, key } = verdict;
  if (key === null) {
    const { keyName, algorithm, signedAt } = query;
    const record = { keyName, algorithm, signedAt, fudge: query.fudge, error, other: Buffer.alloc(0) };
    return withRecord(message, record, Buffer.alloc(0));
  }
  // The client knows the MAC by its own time, and learns ours (RFC 8945 §5.2.3).
  const [signedAt, other] =
    error === TSIG_ERROR.badTime ? [query.signedAt, timeOctets(now)] : [now, Buffer.alloc(0)];
  return sign({ message, key, signedAt, before: query.mac, error, other }).octets;
}

/** Makes the function that signs the messages of one answer, one after another (RFC 8945 §5.3.1). */
export function streamSigner(query: Signature, key: TsigKey): (message: Buffer, now: number) => Buffer {
  let before = query.mac;
  let timersOnly = false;
  return (message, now) => {
    const { octets, mac } = sign({ message, key, signedAt: now, before, timersOnly });
    before = mac;
    timersOnly = true;
    return octets;
  };
}

/** Fields of a TSIG record that are signed, or would be. */
type Signed = Pick<Signature, "keyName" | "algorithm" | "signedAt" | "fudge" | "error" | "other">;

interface ToSign {
  message: Buffer;
  key: TsigKey;
  signedAt: number;
  /** The MAC of the query, or of the message before; null for a query. */
  before: Buffer | null;
  error?: number;
  other?: Buffer;
  /** True for all messages of an answer but the first. */
  timersOnly?: boolean;
}

function sign({ message, key, signedAt, before, error = 0, other = Buffer.alloc(0), timersOnly }: ToSign): {
  octets: Buffer;
  mac: Buffer;
} {
  const record: Signed = {
    keyName: key.name,
    algorithm: ALGORITHM,
    signedAt,
    fudge: FUDGE_SECONDS,
    error,
    other,
  };
  const mac = macOf(key, [sized(before), message, timersOnly === true ? timers(record) : variables(record)]);
  return { octets: withRecord(message, record, mac), mac };
}

function macOf(key: TsigKey, parts: readonly Buffer[]): Buffer {
  return createHmac("sha256", key.secret).update(Buffer.concat(parts)).digest();
}

/** RFC 8945 §4.3.3: what is signed of the record itself. */
function variables(record: Signed): Buffer {
  return Buffer.concat([
    nameOctets(record.keyName),
    Buffer.from([0, CLASS_ANY, 0, 0, 0, 0]),
    nameOctets(record.algorithm),
    timers(record),
    numbers(record.error),
    sized(record.other),
  ]);
}

function timers({ signedAt, fudge }: Signed): Buffer {
  return Buffer.concat([timeOctets(signedAt), numbers(fudge)]);
}

function timeOctets(seconds: number): Buffer {
  const octets = Buffer.alloc(TIME_OCTETS);
  octets.writeUIntBE(seconds, 0, TIME_OCTETS);
  return octets;
}

/** Encodes 16-bit numbers. */
function numbers(...values: readonly number[]): Buffer {
  return Buffer.from(values.flatMap((value) => [value >> 8, value & 0xff]));
}

/** Prefixes octets with their number; nothing for null. */
function sized(octets: Buffer | null): Buffer {
  return octets === null ? Buffer.alloc(0) : Buffer.concat([numbers(octets.length), octets]);
}

/** Appends a TSIG record to a message. */
function withRecord(message: Buffer, record: Signed, mac: Buffer): Buffer {
  const id = message.readUInt16BE(0);
  const data = Buffer.concat([
    nameOctets(record.algorithm),
    timers(record),
    sized(mac),
    numbers(id, record.error),
    sized(record.other),
  ]);
  const head = Buffer.concat([nameOctets(record.keyName), numbers(TSIG_TYPE, CLASS_ANY, 0, 0), sized(data)]);
  const octets = Buffer.concat([message, head]);
  octets.writeUInt16BE(octets.readUInt16BE(ADDITIONAL_COUNT_AT) + 1, ADDITIONAL_COUNT_AT);
  return octets;
}
