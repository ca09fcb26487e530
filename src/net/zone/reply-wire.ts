import { type Answer, AUTHORITATIVE_ANSWER, encode, RECURSION_DESIRED, TRUNCATED_RESPONSE } from "dns-packet";
import ipaddr from "ipaddr.js";
import { isWithin } from "../../core/addresses.ts";
import { COUNTS_AT, HEADER_OCTETS, QUESTION_TAIL_OCTETS } from "../dns/frame.ts";
import { EDNS_UDP_OCTETS, optRecord } from "../dns/wire.ts";
import type { Query, Refusal } from "./query.ts";
import { textStrings, type ZoneRecord } from "./records.ts";

/** What is said to a query. */
export interface Reply {
  rcode: number;
  /** The AA bit: the name lies in our zone. */
  authoritative: boolean;
  answers: readonly ZoneRecord[];
  authorities: readonly ZoneRecord[];
}

const RCODE_MASK = 0x0f;
/** RFC 1035 §4.1.4: two octets that begin so point to a name; no question is long enough to reach beyond their 14 bits. */
const POINTER = 0xc000;
/** What a client without EDNS can take, and the least that one with it can (RFC 1035 §4.2.1, RFC 6891 §6.2.3). */
const PLAIN_UDP_OCTETS = 512;
const MAX_TCP_OCTETS = 0xffff;

/** Octets that the answer to this query may have. */
export function replyLimit(query: Query, transport: "udp" | "tcp"): number {
  if (transport === "tcp") return MAX_TCP_OCTETS;
  if (query.edns === null) return PLAIN_UDP_OCTETS;
  return Math.min(Math.max(query.edns.udpPayloadSize, PLAIN_UDP_OCTETS), EDNS_UDP_OCTETS);
}

/** The octets of a reply; where they are too many, an empty one with TC set, so that the client asks by TCP. */
export function encodeReply(query: Query, reply: Reply, limit: number): Buffer {
  const packet = write(query, reply, 0);
  // RFC 2181 §9: an RRset goes whole or not at all, and we never send more than one that was asked for.
  return packet.length <= limit ? packet : encodeTruncated(query, reply);
}

/** A reply of no records that sends the client to TCP: never larger than its query. */
export function encodeTruncated(query: Query, { rcode, authoritative }: Omit<Reply, "answers">): Buffer {
  return write(query, { rcode, authoritative, answers: [], authorities: [] }, TRUNCATED_RESPONSE);
}

/** A header alone, for what cannot be read as a query. */
export function encodeRefusal({ id, flags, rcode }: Refusal): Buffer {
  return encode({ type: "response", id, flags: flags | rcode });
}

/**
 * The question goes back octet by octet: as text it would lose its class where that has no name, and what a label holds
 * beyond UTF-8.
 */
function write(query: Query, reply: Reply, truncated: number): Buffer {
  const { answers, authorities, authoritative, rcode } = reply;
  const flags =
    truncated |
    (authoritative ? AUTHORITATIVE_ANSWER : 0) |
    (query.recursionDesired ? RECURSION_DESIRED : 0) |
    (rcode & RCODE_MASK);
  // RFC 6891 §6.1.3: the upper bits of the rcode stand in the OPT.
  const additionals = query.edns === null ? [] : [optRecord(rcode >> 4, query.edns.flag_do)];
  const frame = encode({ type: "response", id: query.id, flags, additionals });
  for (const [at, count] of [1, answers.length, authorities.length].entries())
    frame.writeUInt16BE(count, COUNTS_AT + 2 * at);
  const records = [...answers, ...authorities].map((record) => recordOctets(query, record));
  const [header, opt] = [frame.subarray(0, HEADER_OCTETS), frame.subarray(HEADER_OCTETS)];
  return Buffer.concat([header, query.question, ...records, opt]);
}

/**
 * A record with a pointer for its name. dns-packet has none, and with the name in full a DKIM key would not fit a
 * datagram of 512 octets. Names in a record's data are written out, two in an SOA: whatever is asked, a negative answer
 * fits all the same, unless the zone's own name has more than 90 octets.
 */
function recordOctets(query: Query, record: ZoneRecord): Buffer {
  const alone = encode({ answers: [{ ...wireForm(record), name: "." }] });
  // The root's one octet and the header's last make the two of the pointer.
  const start = HEADER_OCTETS - 1;
  alone.writeUInt16BE(POINTER | ownerAt(query, record.name), start);
  return alone.subarray(start);
}

/** Where a record's name stands in the packet: it is the name asked for, or that of the zone, which ends it. */
function ownerAt(query: Query, owner: string): number {
  if (owner === query.name) return HEADER_OCTETS;
  if (!isWithin(query.name, owner)) throw new Error(`a record of ${owner} answers ${query.name}`);
  // A length octet for each label and the root's: two more than letters and dots.
  return HEADER_OCTETS + query.question.length - QUESTION_TAIL_OCTETS - (owner.length + 2);
}

/** A record as dns-packet takes it: it checks no address, and does not cut a text into strings. */
function wireForm(record: ZoneRecord): Answer {
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
