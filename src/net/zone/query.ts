import { decode, type OptAnswer, RECURSION_DESIRED } from "dns-packet";
import {
  afterLabels,
  COUNTS_AT,
  HEADER_OCTETS,
  QUESTION_TAIL_OCTETS,
  type RecordSpan,
  recordSpan,
} from "../dns/frame.ts";
import { canonicalName } from "../dns/wire.ts";
import { RCODE } from "./records.ts";

/** A well-formed standard query. */
export interface Query {
  id: number;
  recursionDesired: boolean;
  /** The question as it came, octet by octet: its letters' case is a secret of the client's that we must repeat. */
  question: Buffer;
  /** The name asked for, lower case, no final dot; the root is "". Octets that no name of ours has are DEL. */
  name: string;
  /** By dns-packet's names; what has none is `UNKNOWN_` and its number. */
  type: string;
  class: string;
  /** What the client says by EDNS(0) (RFC 6891 §6.1), without its options. */
  edns: OptAnswer | null;
}

/** What is refused, whatever else is in its packet. */
export interface Refusal {
  id: number;
  /** Of the packet's flags those that go back: the operation and RD. */
  flags: number;
  rcode: number;
}

/** What is in a packet; null: nothing that is answered. A refusal is answered by a header alone. */
export type Incoming = { kind: "query"; query: Query } | ({ kind: "refusal" } & Refusal) | null;

/** A query is a name and a few options. What is larger is dropped unread. */
export const MAX_QUERY_OCTETS = 4096;
/** Records that may stand behind the question: an OPT, a signature and a few others. */
const MAX_EXTRA_RECORDS = 8;
const OPTION_HEAD_OCTETS = 4;
/** An OPT without options, and what of it stands before the length of its data. */
const OPT_OCTETS = 11;
const OPT_FIXED_OCTETS = 9;
const OPT = 41;
const RESPONSE = 0x8000;
const OPCODE = 0x7800;
const [SPACE, DOT, BACKSLASH, DEL] = [0x20, 0x2e, 0x5c, 0x7f];

/** Where that which matters stands in a packet. */
interface Outline {
  /** Index behind the question. */
  end: number;
  /** Index of the OPT. */
  opt: number | null;
}

/** Of what is malformed. */
const HEADER_ALONE: Outline = { end: HEADER_OCTETS, opt: null };

/**
 * Reads a packet. Answers are ignored, since two servers that answer one another would never end, as is what is no DNS
 * packet at all. Trailing octets are ignored.
 *
 * dns-packet reads a small packet made of what matters to us, not the one that came: it decodes each record behind the
 * question, and 4 KiB of NSEC or client subnets keep it busy for 1 to 2 ms, which a flood of them could use; it reads
 * options beyond the end of their OPT, and throws at data of records that we pass over.
 */
export function readQuery(packet: Buffer): Incoming {
  if (packet.length < HEADER_OCTETS || packet.length > MAX_QUERY_OCTETS) return null;
  if ((packet.readUInt16BE(2) & RESPONSE) !== 0) return null;
  const outline = findOutline(packet) ?? HEADER_ALONE;
  const { id = 0, flags = 0, flag_rd, questions, additionals } = decode(smallPacket(packet, outline));
  const back = flags & (OPCODE | RECURSION_DESIRED);
  // Of another operation (NOTIFY, UPDATE) nothing but the header is known (RFC 8906 §3.1.4).
  if ((flags & OPCODE) !== 0) return { kind: "refusal", id, flags: back, rcode: RCODE.notImplemented };
  const [asked] = questions ?? [];
  if (asked === undefined) return { kind: "refusal", id, flags: back, rcode: RCODE.formatError };
  const query: Query = {
    id,
    recursionDesired: flag_rd,
    // A copy: the socket may use the packet's memory again while a key is looked up.
    question: Buffer.from(packet.subarray(HEADER_OCTETS, outline.end)),
    name: canonicalName(asked.name),
    type: asked.type,
    class: asked.class ?? "IN",
    edns: additionals?.find((record) => record.type === "OPT") ?? null,
  };
  return { kind: "query", query };
}

/** RFC 9619: a query has one question. Null: malformed. */
function findOutline(packet: Buffer): Outline | null {
  const root = packet.readUInt16BE(COUNTS_AT) === 1 ? afterLabels(packet, HEADER_OCTETS) : null;
  // The first name of a packet has nothing before it that a pointer could mean.
  if (root === null || packet[root] !== 0) return null;
  const end = root + 1 + QUESTION_TAIL_OCTETS;
  const opt = end > packet.length ? "malformed" : findOpt(packet, end);
  return opt === "malformed" ? null : { end, opt };
}

/** Walks the records behind the question for an OPT; others, such as the SOA of an IXFR, are passed over. */
function findOpt(packet: Buffer, start: number): number | null | "malformed" {
  const beforeAdditional = packet.readUInt16BE(6) + packet.readUInt16BE(8);
  const records = beforeAdditional + packet.readUInt16BE(10);
  if (records > MAX_EXTRA_RECORDS) return "malformed";
  let opt: number | null = null;
  for (let record = 0, at = start; record < records; record++) {
    const span = recordSpan(packet, at);
    if (span === null) return "malformed";
    if (span.type === OPT) {
      // RFC 6891 §6.1.1: one OPT at most, in the additional section, named by the root.
      if (opt !== null || record < beforeAdditional || packet[at] !== 0) return "malformed";
      if (!hasWholeOptions(packet, span)) return "malformed";
      opt = at;
    }
    at = span.end;
  }
  return opt;
}

/** None of the options means anything to us, but each must end where it says. */
function hasWholeOptions(packet: Buffer, { data, end }: RecordSpan): boolean {
  let at = data;
  while (at + OPTION_HEAD_OCTETS <= end) at += OPTION_HEAD_OCTETS + packet.readUInt16BE(at + 2);
  return at === end;
}

/** Header, question and the OPT without its options, each counted as it is there. */
function smallPacket(packet: Buffer, { end, opt }: Outline): Buffer {
  const small = Buffer.alloc(end + (opt === null ? 0 : OPT_OCTETS));
  packet.copy(small, 0, 0, end);
  for (const [at, count] of [end > HEADER_OCTETS ? 1 : 0, 0, 0, opt === null ? 0 : 1].entries())
    small.writeUInt16BE(count, COUNTS_AT + 2 * at);
  if (opt !== null) packet.copy(small, end, opt, opt + OPT_FIXED_OCTETS);
  maskName(small, end - QUESTION_TAIL_OCTETS);
  return small;
}

/**
 * Makes DEL, which no name of ours has, of dots and backslashes within labels and of what is not visible ASCII:
 * dns-packet's text of a name joins labels by dots, and decodes UTF-8.
 */
function maskName(packet: Buffer, end: number): void {
  for (let at = HEADER_OCTETS, label = at; at < end; at++) {
    const octet = packet[at] ?? 0;
    if (at === label) label += 1 + octet;
    else if (octet <= SPACE || octet === DOT || octet === BACKSLASH || octet > DEL) packet[at] = DEL;
  }
}
