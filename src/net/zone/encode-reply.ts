import { type Answer, AUTHORITATIVE_ANSWER, encode, RECURSION_DESIRED, TRUNCATED_RESPONSE } from "dns-packet";
import ipaddr from "ipaddr.js";
import { isWithin } from "../../core/addresses.ts";
import { COUNTS_AT, HEADER_OCTETS, QUESTION_TAIL_OCTETS } from "../dns/packet-layout.ts";
import { EDNS_UDP_OCTETS, optRecord } from "../dns/packet.ts";
import type { Query, Refusal } from "./query.ts";
import { RCODE, textStrings, type ZoneRecord } from "./records.ts";
import { nameOctets } from "./tsig.ts";

/** The content of a reply to a query. */
export interface Reply {
  rcode: number;
  /** The AA bit: the name is in our zone. */
  authoritative: boolean;
  answers: readonly ZoneRecord[];
  authorities: readonly ZoneRecord[];
}

const RCODE_MASK = 0x0f;
/** RFC 1035 §4.1.4: bits of a pointer to a name. The other 14 can address the end of any question. */
const POINTER = 0xc000;
/** Octets that every client accepts by UDP, with or without EDNS (RFC 1035 §4.2.1, RFC 6891 §6.2.3). */
const PLAIN_UDP_OCTETS = 512;
const MAX_TCP_OCTETS = 0xffff;

/** Returns the maximum size of the reply to this query. */
export function replyLimit(query: Query, transport: "udp" | "tcp"): number {
  if (transport === "tcp") return MAX_TCP_OCTETS;
  if (query.edns === null) return PLAIN_UDP_OCTETS;
  return Math.min(Math.max(query.edns.udpPayloadSize, PLAIN_UDP_OCTETS), EDNS_UDP_OCTETS);
}

/** Encodes a reply. If it is too large, it is empty with TC set, so that the client asks by TCP. */
export function encodeReply(query: Query, reply: Reply, limit: number): Buffer {
  const octetsOf = (record: ZoneRecord) => recordOctets(ownerAt(query, record.name), record);
  const packet = buildPacket(query, reply, 0, [reply.answers.map(octetsOf), reply.authorities.map(octetsOf)]);
  // RFC 2181 §9: an RRset is sent whole or not at all, and we never send more than the one asked for.
  return packet.length <= limit ? packet : encodeTruncated(query, reply);
}

/** Encodes a reply without records that makes the client use TCP. It is never larger than its query. */
export function encodeTruncated(query: Query, reply: ReplyHead): Buffer {
  return buildPacket(query, reply, TRUNCATED_RESPONSE, [[], []]);
}

/** Encodes one message of a zone transfer from encoded records (RFC 5936 §2.2). */
export function encodeTransferMessage(query: Query, records: readonly Buffer[]): Buffer {
  return buildPacket(query, { rcode: RCODE.noError, authoritative: true }, 0, [records, []]);
}

/** Encodes a record of a zone for a transfer. The end of its name points to the zone's name in the question. */
export function transferredRecord(origin: string, record: ZoneRecord): Buffer {
  const labels = record.name === origin ? "" : record.name.slice(0, -origin.length - 1);
  return Buffer.concat([nameOctets(labels).subarray(0, -1), recordOctets(HEADER_OCTETS, record)]);
}

/** Encodes a header alone, for packets that are not readable as a query. */
export function encodeRefusal({ id, flags, rcode }: Refusal): Buffer {
  return encode({ type: "response", id, flags: flags | rcode });
}

type ReplyHead = Pick<Reply, "rcode" | "authoritative">;

/** Copies the question octet by octet: as text it would lose an unnamed class and octets that are not UTF-8. */
function buildPacket(
  query: Query,
  { authoritative, rcode }: ReplyHead,
  truncated: number,
  [answers, authorities]: readonly [readonly Buffer[], readonly Buffer[]],
): Buffer {
  const flags =
    truncated |
    (authoritative ? AUTHORITATIVE_ANSWER : 0) |
    (query.recursionDesired ? RECURSION_DESIRED : 0) |
    (rcode & RCODE_MASK);
  // RFC 6891 §6.1.3: the upper bits of the rcode are in the OPT record.
  const additionals = query.edns === null ? [] : [optRecord(rcode >> 4, query.edns.flag_do)];
  const frame = encode({ type: "response", id: query.id, flags, additionals });
  for (const [at, count] of [1, answers.length, authorities.length].entries())
    frame.writeUInt16BE(count, COUNTS_AT + 2 * at);
  const [header, opt] = [frame.subarray(0, HEADER_OCTETS), frame.subarray(HEADER_OCTETS)];
  return Buffer.concat([header, query.question, ...answers, ...authorities, opt]);
}

/**
 * Encodes a record with a pointer as its name. dns-packet cannot do that, and with the full name a DKIM key would not
 * fit into 512 octets. Names in the data are written in full, two in an SOA. If the zone's name has up to 90 octets, a
 * negative answer always fits.
 */
function recordOctets(nameAt: number, record: ZoneRecord): Buffer {
  const alone = encode({ answers: [{ ...toDnsPacket(record), name: "." }] });
  // The root's single octet and the header's last one become the two octets of the pointer.
  const start = HEADER_OCTETS - 1;
  alone.writeUInt16BE(POINTER | nameAt, start);
  return alone.subarray(start);
}

/** Returns the offset of a record's name in the packet: it is the name asked for, or the zone's name at its end. */
function ownerAt(query: Query, owner: string): number {
  if (owner === query.name) return HEADER_OCTETS;
  if (!isWithin(query.name, owner)) throw new Error(`a record of ${owner} answers ${query.name}`);
  // One length octet for each label and the root: two more than letters and dots.
  return HEADER_OCTETS + query.question.length - QUESTION_TAIL_OCTETS - (owner.length + 2);
}

/** Converts a record for dns-packet, which does not check addresses and does not split long text. */
function toDnsPacket(record: ZoneRecord): Answer {
  switch (record.type) {
    case "A":
    case "AAAA":
      return { ...record, data: ipaddr.parse(record.data).toNormalizedString() };
    case "TXT":
      return { ...record, data: textStrings(record.data) };
    default:
      return record;
  }
}
