/** RFC 1035 §4.1.1. */
export const HEADER_OCTETS = 12;
/** Where its four counts begin. */
export const COUNTS_AT = 4;
/** Type and class behind the name of a question. */
export const QUESTION_TAIL_OCTETS = 4;
/** Type, class, TTL and data length behind the name of a record. */
const RECORD_TAIL_OCTETS = 10;
/** A length octet with these bits begins a pointer, which ends a name (RFC 1035 §4.1.4). */
const POINTER = 0xc0;
/** RFC 1035 §2.3.4: octets of a label; a length octet beyond that is a pointer's, or reserved. */
const MAX_LABEL_OCTETS = 63;
/** RFC 1035 §2.3.4: octets of a name, length octets included. */
const MAX_NAME_OCTETS = 255;

/**
 * Records of a packet that is read. One of 64 KiB has room for five thousand, and with names of a hundred labels, which
 * pointers make out of two octets, to decode them takes a tenth of a second.
 */
export const MAX_RECORDS = 1000;

/**
 * Labels and pointers that are read for all names of a packet together. A thousand MX records whose hosts are one name of 120
 * labels fit into 16 KiB, as resolvers themselves write them, and to decode them holds the event loop for forty milliseconds.
 */
export const MAX_NAME_STEPS = 10_000;

/** Record types whose data have one length: A and AAAA. */
const DATA_OCTETS: Readonly<Record<number, number>> = { 1: 4, 28: 16 };
/** Record types whose data have a fixed beginning: TLSA (RFC 6698 §2.1). */
const LEAST_DATA_OCTETS: Readonly<Record<number, number>> = { 52: 3 };

/** Where the names stand in the data of the record types that the decoder reads names of: octets before the first, and how many. */
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

/** Where a record of this type has its data: from `data` to before `end`, all within the packet. */
export interface RecordSpan {
  type: number;
  data: number;
  end: number;
}

/**
 * Whether a packet holds all that its counts and lengths say, and no more than is read. The decoder we use does not look: it would read the data of
 * a record that is cut off from beyond the end, or from the record behind it.
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

/** What is left of the steps behind a record's names; less than none where they take more. */
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

/** The same behind the name from `start`, its pointers followed, be they wrong: what takes too many steps is not decoded. */
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

/** The record that begins at `start`; null where it is cut off. */
export function recordSpan(packet: Buffer, start: number): RecordSpan | null {
  const name = afterName(packet, start);
  if (name === null || name + RECORD_TAIL_OCTETS > packet.length) return null;
  const data = name + RECORD_TAIL_OCTETS;
  const end = data + packet.readUInt16BE(data - 2);
  return end > packet.length ? null : { type: packet.readUInt16BE(name), data, end };
}

/** Index behind the name that begins at `start`, its pointers not followed; null where it is none. */
function afterName(packet: Buffer, start: number): number | null {
  const labels = afterLabels(packet, start);
  return labels === null ? null : labels + (packet[labels] === 0 ? 1 : 2);
}

/** Index of the root's 0 or of the pointer that ends the name from `start`; null where it is none. */
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
