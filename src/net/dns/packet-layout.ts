/** RFC 1035 §4.1.1. */
export const HEADER_OCTETS = 12;
/** Offset of the four counts in the header. */
export const COUNTS_AT = 4;
/** Type and class after the name of a question. */
export const QUESTION_TAIL_OCTETS = 4;
/** Type, class, TTL and data length after the name of a record. */
const RECORD_TAIL_OCTETS = 10;
/** If a length octet has these bits, it begins a pointer, which ends the name (RFC 1035 §4.1.4). */
const POINTER = 0xc0;
/** RFC 1035 §2.3.4: octets of a label. If a length octet is larger, it begins a pointer or is reserved. */
const MAX_LABEL_OCTETS = 63;
/** RFC 1035 §2.3.4: octets of a name with its length octets. */
const MAX_NAME_OCTETS = 255;

/**
 * Records read of a packet. 64 KiB hold five thousand. If pointers make names of a hundred labels out of two octets,
 * decoding them takes 100 ms.
 */
export const MAX_RECORDS = 1000;

/**
 * Labels and pointers read for all names of a packet. A thousand MX records with one host name of 120 labels fit into
 * 16 KiB, as real resolvers write them, and decoding them takes 40 ms.
 */
export const MAX_NAME_STEPS = 10_000;

/** Data length of record types that have a fixed one: A and AAAA. */
const DATA_OCTETS: Readonly<Record<number, number>> = { 1: 4, 28: 16 };
/** Minimum data length of record types with a fixed beginning: TLSA (RFC 6698 §2.1). */
const LEAST_DATA_OCTETS: Readonly<Record<number, number>> = { 52: 3 };

/** Names in the data of record types that the decoder parses: octets before the first name, and number of names. */
const NAMES_IN_DATA: Readonly<Record<number, { before: number; names: number }>> = {
  // NS, CNAME, PTR, DNAME, NSEC
  2: { before: 0, names: 1 },
  5: { before: 0, names: 1 },
  12: { before: 0, names: 1 },
  39: { before: 0, names: 1 },
  47: { before: 0, names: 1 },
  // SOA, RP
  6: { before: 0, names: 2 },
  17: { before: 0, names: 2 },
  // MX, SRV, RRSIG
  15: { before: 2, names: 1 },
  33: { before: 6, names: 1 },
  46: { before: 18, names: 1 },
};

/** Position of a record's data: from `data` to before `end`, within the packet. */
export interface RecordSpan {
  type: number;
  data: number;
  end: number;
}

/**
 * Checks that a packet contains all that its counts and lengths claim, within our limits. The decoder does not check:
 * it would read the data of a truncated record from beyond the end, or from the next record.
 */
export function isWellFormed(packet: Buffer): boolean {
  if (packet.length < HEADER_OCTETS) return false;
  let at: number | null = HEADER_OCTETS;
  for (let left = packet.readUInt16BE(COUNTS_AT); left > 0 && at !== null; left--)
    at = afterQuestion(packet, at);
  const records = packet.readUInt16BE(6) + packet.readUInt16BE(8) + packet.readUInt16BE(10);
  if (records > MAX_RECORDS) return false;
  let steps = MAX_NAME_STEPS;
  for (let left = records; left > 0 && at !== null && steps >= 0; left--) {
    const record = at;
    at = afterRecord(packet, record);
    if (at !== null) steps = stepsLeftOver(packet, record, steps);
  }
  return at !== null && steps >= 0;
}

/** Returns the steps left after a record's names; negative if they need too many. */
function stepsLeftOver(packet: Buffer, start: number, steps: number): number {
  const record = recordSpan(packet, start);
  const { before, names } = NAMES_IN_DATA[record?.type ?? 0] ?? { before: 0, names: 0 };
  let left = stepsLeft(packet, start, steps);
  let at = record === null ? null : record.data + before;
  for (let count = 0; count < names && at !== null && left >= 0; count++) {
    left = stepsLeft(packet, at, left);
    at = afterName(packet, at);
  }
  return left;
}

/** Returns the steps left after the name at `start`, following its pointers, even if they are invalid. */
function stepsLeft(packet: Buffer, start: number, steps: number): number {
  let left = steps;
  for (let at = start; left >= 0; left--) {
    const length = packet[at] ?? 0;
    if (length === 0) return left;
    if ((length & POINTER) === POINTER && at + 1 < packet.length)
      at = packet.readUInt16BE(at) & ~(POINTER << 8);
    else at += length + 1;
  }
  return left;
}

function afterQuestion(packet: Buffer, start: number): number | null {
  const name = afterName(packet, start);
  return name === null || name + QUESTION_TAIL_OCTETS > packet.length ? null : name + QUESTION_TAIL_OCTETS;
}

function afterRecord(packet: Buffer, start: number): number | null {
  const record = recordSpan(packet, start);
  if (record === null) return null;
  const { type, data, end } = record;
  const octets = end - data;
  const fits = octets === (DATA_OCTETS[type] ?? octets) && octets >= (LEAST_DATA_OCTETS[type] ?? 0);
  return fits ? end : null;
}

/** Returns the record at `start`, or null if it is cut off. */
export function recordSpan(packet: Buffer, start: number): RecordSpan | null {
  const name = afterName(packet, start);
  if (name === null || name + RECORD_TAIL_OCTETS > packet.length) return null;
  const data = name + RECORD_TAIL_OCTETS;
  const end = data + packet.readUInt16BE(data - 2);
  return end > packet.length ? null : { type: packet.readUInt16BE(name), data, end };
}

/** Returns the index after the name at `start`, without following pointers, or null if it is not a name. */
function afterName(packet: Buffer, start: number): number | null {
  const labels = afterLabels(packet, start);
  return labels === null ? null : labels + (packet[labels] === 0 ? 1 : 2);
}

/** Returns the index of the root's 0 or of the pointer that ends the name at `start`, or null if it is not a name. */
export function afterLabels(packet: Buffer, start: number): number | null {
  for (let at = start; at - start < MAX_NAME_OCTETS; ) {
    const length = packet[at];
    if (length === undefined) return null;
    if (length === 0 || (length & POINTER) === POINTER) return at;
    if (length > MAX_LABEL_OCTETS) return null;
    at += length + 1;
  }
  return null;
}
