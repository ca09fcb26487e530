import { decode, type OptAnswer, RECURSION_DESIRED } from "dns-packet";
import {
  afterLabels,
  COUNTS_AT,
  HEADER_OCTETS,
  QUESTION_TAIL_OCTETS,
  type RecordSpan,
  recordSpan,
} from "../dns/packet-layout.ts";
import { canonicalName } from "../dns/packet.ts";
import { RCODE } from "./records.ts";
import { readSignature, type Signature, TSIG_TYPE } from "./tsig.ts";

/** A well-formed standard query. */
export interface Query {
  id: number;
  recursionDesired: boolean;
  /** The question as received: the case of its letters is the client's secret, which we must repeat. */
  question: Buffer;
  /** The name asked for: lower case, without final dot; the root is "". Octets that none of our names has are DEL. */
  name: string;
  /** As dns-packet names it. If it has no name, `UNKNOWN_` and its number. */
  type: string;
  class: string;
  /** The client's EDNS(0) record (RFC 6891 §6.1) without its options. */
  edns: OptAnswer | null;
  /** The client's TSIG record (RFC 8945); null if there is none. */
  signature: Signature | null;
  /** Serial of the client's copy, if it asks for what has changed since (RFC 1995 §3); else null. */
  knownSerial: number | null;
}

/** A packet that is refused without reading the rest. */
export interface Refusal {
  id: number;
  /** Flags of the packet that the reply repeats: opcode and RD. */
  flags: number;
  rcode: number;
}

/** Content of a packet; null if it gets no answer. A refusal is answered by a header alone. */
export type Incoming = { kind: "query"; query: Query } | ({ kind: "refusal" } & Refusal) | null;

/** A query is a name and a few options. Larger packets are dropped unread. */
export const MAX_QUERY_OCTETS = 4096;
/** Maximum number of records allowed after the question: an OPT, a signature and a few more. */
const MAX_EXTRA_RECORDS = 8;
const OPTION_HEAD_OCTETS = 4;
/** Size of an OPT without options, and its octets before the data length. */
const OPT_OCTETS = 11;
const OPT_FIXED_OCTETS = 9;
const OPT = 41;
const SOA = 6;
/** The five numbers at the end of an SOA. The first is the serial. */
const SOA_NUMBERS_OCTETS = 20;
const RESPONSE = 0x8000;
const OPCODE = 0x7800;
const [SPACE, DOT, BACKSLASH, DEL] = [0x20, 0x2e, 0x5c, 0x7f];

/** Positions of the relevant parts of a packet. */
interface Outline {
  /** Index after the question. */
  end: number;
  extras: Extras;
}

/** The fields that are read of the records after the question. */
interface Extras {
  /** Index of the OPT; null if there is none. */
  opt: number | null;
  signature: Signature | null;
  /** Serial of an SOA in the authority section; null if there is none. */
  serial: number | null;
}

/** For malformed packets. */
const HEADER_ALONE: Outline = {
  end: HEADER_OCTETS,
  extras: { opt: null, signature: null, serial: null },
};

/**
 * Reads a packet. Ignores answers, since two servers that answer each other would never stop, and anything that is not
 * DNS. Ignores trailing octets.
 *
 * dns-packet reads only a small copy with the relevant parts. It decodes each record after the question: 4 KiB of NSEC
 * records or client subnets take 1 to 2 ms, which a flood could exploit. It also reads options beyond the end of their
 * OPT, and throws on data of records that we skip.
 */
export function readQuery(packet: Buffer): Incoming {
  if (packet.length < HEADER_OCTETS || packet.length > MAX_QUERY_OCTETS) return null;
  if ((packet.readUInt16BE(2) & RESPONSE) !== 0) return null;
  const outline = findOutline(packet) ?? HEADER_ALONE;
  const { id = 0, flags = 0, flag_rd, questions, additionals } = decode(smallPacket(packet, outline));
  const back = flags & (OPCODE | RECURSION_DESIRED);
  // If the operation is another one (NOTIFY, UPDATE), only the header is read (RFC 8906 §3.1.4).
  if ((flags & OPCODE) !== 0) return { kind: "refusal", id, flags: back, rcode: RCODE.notImplemented };
  const [asked] = questions ?? [];
  if (asked === undefined) return { kind: "refusal", id, flags: back, rcode: RCODE.formatError };
  const query: Query = {
    id,
    recursionDesired: flag_rd,
    // A copy: the socket may reuse the packet's memory while we look up a key.
    question: Buffer.from(packet.subarray(HEADER_OCTETS, outline.end)),
    name: canonicalName(asked.name),
    type: asked.type,
    class: asked.class ?? "IN",
    edns: additionals?.find((record) => record.type === "OPT") ?? null,
    signature: outline.extras.signature,
    knownSerial: asked.type === "IXFR" ? outline.extras.serial : null,
  };
  return { kind: "query", query };
}

/** Returns the TSIG record of a packet with one question; null if it has none or is malformed. */
export function signatureOf(packet: Buffer): Signature | null {
  return findOutline(packet)?.extras.signature ?? null;
}

/** RFC 9619: a query has one question. Returns null if it is malformed. */
function findOutline(packet: Buffer): Outline | null {
  const root = packet.readUInt16BE(COUNTS_AT) === 1 ? afterLabels(packet, HEADER_OCTETS) : null;
  // The first name of a packet cannot use a pointer, since no name comes before it.
  if (root === null || packet[root] !== 0) return null;
  const end = root + 1 + QUESTION_TAIL_OCTETS;
  const extras = end > packet.length ? null : readExtras(packet, end);
  return extras === null ? null : { end, extras };
}

/** Reads what we use of the records after the question, and skips others. Returns null if they are malformed. */
function readExtras(packet: Buffer, start: number): Extras | null {
  const beforeAdditional = packet.readUInt16BE(6) + packet.readUInt16BE(8);
  const records = beforeAdditional + packet.readUInt16BE(10);
  if (records > MAX_EXTRA_RECORDS) return null;
  const extras: Extras = { opt: null, signature: null, serial: null };
  for (let record = 0, at = start; record < records; record++) {
    const span = recordSpan(packet, at);
    if (span === null) return null;
    if (span.type === OPT) {
      // RFC 6891 §6.1.1: at most one OPT, in the additional section, with the root as its name.
      if (extras.opt !== null || record < beforeAdditional || packet[at] !== 0) return null;
      if (!hasWholeOptions(packet, span)) return null;
      extras.opt = at;
    } else if (span.type === TSIG_TYPE) {
      // RFC 8945 §5.2: at most one TSIG, the last record of the additional section.
      if (record < records - 1 || record < beforeAdditional) return null;
      extras.signature = readSignature(packet, at, span.end);
      if (extras.signature === null) return null;
    } else if (span.type === SOA && span.end - span.data >= SOA_NUMBERS_OCTETS)
      extras.serial = packet.readUInt32BE(span.end - SOA_NUMBERS_OCTETS);
    at = span.end;
  }
  return extras;
}

/** Checks that each option ends within the data. We use none of them. */
function hasWholeOptions(packet: Buffer, { data, end }: RecordSpan): boolean {
  let at = data;
  while (at + OPTION_HEAD_OCTETS <= end) at += OPTION_HEAD_OCTETS + packet.readUInt16BE(at + 2);
  return at === end;
}

/** Returns a packet with header, question and OPT without options, with correct counts. */
function smallPacket(packet: Buffer, { end, extras: { opt } }: Outline): Buffer {
  const small = Buffer.alloc(end + (opt === null ? 0 : OPT_OCTETS));
  packet.copy(small, 0, 0, end);
  for (const [at, count] of [end > HEADER_OCTETS ? 1 : 0, 0, 0, opt === null ? 0 : 1].entries())
    small.writeUInt16BE(count, COUNTS_AT + 2 * at);
  if (opt !== null) packet.copy(small, end, opt, opt + OPT_FIXED_OCTETS);
  maskName(small, end - QUESTION_TAIL_OCTETS);
  return small;
}

/**
 * Replaces with DEL, which none of our names has: dots and backslashes within labels, and anything that is not visible
 * ASCII. dns-packet joins labels with dots and decodes UTF-8.
 */
function maskName(packet: Buffer, end: number): void {
  for (let at = HEADER_OCTETS, label = at; at < end; at++) {
    const octet = packet[at] ?? 0;
    if (at === label) label += 1 + octet;
    else if (octet <= SPACE || octet === DOT || octet === BACKSLASH || octet > DEL) packet[at] = DEL;
  }
}
