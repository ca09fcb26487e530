import { afterName } from "../dns/frame.ts";
import { RCODE } from "./records.ts";

/** What a client says by EDNS(0) (RFC 6891 §6.1). */
export interface Edns {
  version: number;
  /** Octets of a UDP answer that the client can take. */
  payload: number;
  /** The DO bit, which is sent back as it came (RFC 3225 §3). */
  dnssecOk: boolean;
}

/** A well-formed standard query. */
export interface Query {
  id: number;
  recursionDesired: boolean;
  /** The question as it came, octet by octet: its letters' case is a secret of the client's that we must repeat. */
  question: Buffer;
  /** The name asked for, lower case, no final dot; the root is "". Octets that no name of ours has are `\ddd`. */
  name: string;
  type: number;
  class: number;
  edns: Edns | null;
}

/** What is in a packet; null: nothing that is answered. A refusal is answered by a header alone. */
export type Incoming =
  | { kind: "query"; query: Query }
  | { kind: "refusal"; id: number; opcode: number; recursionDesired: boolean; rcode: number }
  | null;

/** A query is a name and a few options. What is larger is dropped unread. */
export const MAX_QUERY_OCTETS = 4096;
/** Records that may stand behind the question: an OPT, a signature and a few others. */
const MAX_EXTRA_RECORDS = 8;
const HEADER_OCTETS = 12;
/** RFC 1035 §2.3.4: octets of a name, length octets included, and of one label. */
const MAX_NAME_OCTETS = 255;
const MAX_LABEL_OCTETS = 63;
const RECORD_TAIL_OCTETS = 10;
const OPTION_HEAD_OCTETS = 4;
const OPT = 41;
const RESPONSE = 0x8000;
const RECURSION_DESIRED = 0x0100;
const DNSSEC_OK = 0x8000;

/**
 * Reads a packet. Answers are ignored, since two servers that answer one another would never end, as is what is no DNS
 * packet at all. Trailing octets are ignored.
 *
 * Not by dns-packet: its text of a name confuses dots and octets within labels. It reads options beyond the end of
 * their OPT, and decodes each record behind the question: 4 KiB of NSEC or client subnets keep it busy for 1 to 2 ms,
 * which a flood of them could use. A check before it would have to read all that is read here.
 */
export function readQuery(packet: Buffer): Incoming {
  if (packet.length < HEADER_OCTETS || packet.length > MAX_QUERY_OCTETS) return null;
  const flags = packet.readUInt16BE(2);
  if ((flags & RESPONSE) !== 0) return null;
  const id = packet.readUInt16BE(0);
  const opcode = (flags >> 11) & 0x0f;
  const recursionDesired = (flags & RECURSION_DESIRED) !== 0;
  // Of another operation (NOTIFY, UPDATE) nothing but the header is known (RFC 8906 §3.1.4).
  const body = opcode === 0 ? readBody(packet) : null;
  if (body !== null) return { kind: "query", query: { id, recursionDesired, ...body } };
  const rcode = opcode === 0 ? RCODE.formatError : RCODE.notImplemented;
  return { kind: "refusal", id, opcode, recursionDesired, rcode };
}

type Body = Pick<Query, "question" | "name" | "type" | "class" | "edns">;

/** RFC 9619: a query has one question. */
function readBody(packet: Buffer): Body | null {
  if (packet.readUInt16BE(4) !== 1) return null;
  const asked = readName(packet, HEADER_OCTETS);
  if (asked === null || asked.end + 4 > packet.length) return null;
  const edns = readExtras(packet, asked.end + 4);
  if (edns === "malformed") return null;
  return {
    // A copy: the socket may use the packet's memory again while a key is looked up.
    question: Buffer.from(packet.subarray(HEADER_OCTETS, asked.end + 4)),
    name: asked.name,
    type: packet.readUInt16BE(asked.end),
    class: packet.readUInt16BE(asked.end + 2),
    edns,
  };
}

/** The first name of a packet has nothing before it that a pointer could mean. */
function readName(packet: Buffer, start: number): { name: string; end: number } | null {
  const labels: string[] = [];
  for (let at = start; at - start < MAX_NAME_OCTETS; ) {
    const length = packet[at];
    if (length === undefined || length > MAX_LABEL_OCTETS) return null;
    if (length === 0) return { name: labels.join("."), end: at + 1 };
    if (at + 1 + length > packet.length) return null;
    labels.push(labelText(packet.toString("latin1", at + 1, at + 1 + length)));
    at += length + 1;
  }
  return null;
}

/** Lower case by ASCII alone (RFC 4343 §3). A dot within a label must not look like one between labels. */
function labelText(octets: string): string {
  const plain = octets.replace(
    /[^\x21-\x2d\x2f-\x5b\x5d-\x7e]/g,
    (octet) => `\\${String(octet.charCodeAt(0)).padStart(3, "0")}`,
  );
  return plain.toLowerCase();
}

/** Walks the records behind the question for an OPT; others, such as the SOA of an IXFR, are passed over. */
function readExtras(packet: Buffer, start: number): Edns | null | "malformed" {
  const beforeAdditional = packet.readUInt16BE(6) + packet.readUInt16BE(8);
  const records = beforeAdditional + packet.readUInt16BE(10);
  if (records > MAX_EXTRA_RECORDS) return "malformed";
  let edns: Edns | null = null;
  let at = start;
  for (let record = 0; record < records; record++) {
    const tail = afterName(packet, at);
    if (tail === null || tail + RECORD_TAIL_OCTETS > packet.length) return "malformed";
    const end = tail + RECORD_TAIL_OCTETS + packet.readUInt16BE(tail + 8);
    if (end > packet.length) return "malformed";
    if (packet.readUInt16BE(tail) === OPT) {
      // RFC 6891 §6.1.1: one OPT at most, in the additional section, named by the root.
      if (edns !== null || record < beforeAdditional || tail !== at + 1) return "malformed";
      edns = readOpt(packet, tail, end);
      if (edns === null) return "malformed";
    }
    at = end;
  }
  return edns;
}

/** None of the options means anything to us, but each must end where it says. */
function readOpt(packet: Buffer, tail: number, end: number): Edns | null {
  for (let at = tail + RECORD_TAIL_OCTETS; at < end; ) {
    if (at + OPTION_HEAD_OCTETS > end) return null;
    at += OPTION_HEAD_OCTETS + packet.readUInt16BE(at + 2);
    if (at > end) return null;
  }
  return {
    payload: packet.readUInt16BE(tail + 2),
    version: packet.readUInt8(tail + 5),
    dnssecOk: (packet.readUInt16BE(tail + 6) & DNSSEC_OK) !== 0,
  };
}
