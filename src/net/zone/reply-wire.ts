import ipaddr from "ipaddr.js";
import { EDNS_UDP_OCTETS } from "../dns-wire.ts";
import { PacketWriter, uint16, uint32 } from "./packet-writer.ts";
import type { Query } from "./query.ts";
import { CLASS_IN, type RecordData, textStrings, TYPE_NUMBERS, type ZoneRecord } from "./records.ts";

/** What is said to a query. */
export interface Reply {
  rcode: number;
  /** The AA bit: the name lies in our zone. */
  authoritative: boolean;
  answers: readonly ZoneRecord[];
  authorities: readonly ZoneRecord[];
}

const HEADER_OCTETS = 12;
const RESPONSE = 0x8000;
const AUTHORITATIVE = 0x0400;
const TRUNCATED = 0x0200;
const RECURSION_DESIRED = 0x0100;
const DNSSEC_OK = 0x8000;
const OPT = 41;
const OPT_OCTETS = 11;
/** What a client without EDNS can take, and the least that one with it can (RFC 1035 §4.2.1, RFC 6891 §6.2.3). */
export const PLAIN_UDP_OCTETS = 512;
const MAX_TCP_OCTETS = 0xffff;

/** Octets that the answer to this query may have. */
export function replyLimit(query: Query, transport: "udp" | "tcp"): number {
  if (transport === "tcp") return MAX_TCP_OCTETS;
  if (query.edns === null) return PLAIN_UDP_OCTETS;
  return Math.min(Math.max(query.edns.payload, PLAIN_UDP_OCTETS), EDNS_UDP_OCTETS);
}

/** The octets of a reply; where they are too many, an empty one with TC set, so that the client asks by TCP. */
export function encodeReply(query: Query, reply: Reply, limit: number): Buffer {
  const packet = write(query, reply, 0);
  // RFC 2181 §9: an RRset goes whole or not at all, and we never send more than one that was asked for.
  return packet.length <= limit ? packet : encodeTruncated(query, reply);
}

/** A reply of no records that sends the client to TCP: never larger than its query. */
export function encodeTruncated(query: Query, { rcode, authoritative }: Omit<Reply, "answers">): Buffer {
  return write(query, { rcode, authoritative, answers: [], authorities: [] }, TRUNCATED);
}

/** A header alone, for what cannot be read as a query. */
export function encodeRefusal(refusal: {
  id: number;
  opcode: number;
  recursionDesired: boolean;
  rcode: number;
}): Buffer {
  const flags = RESPONSE | (refusal.opcode << 11) | (refusal.recursionDesired ? RECURSION_DESIRED : 0);
  return header(refusal.id, flags | refusal.rcode, [0, 0, 0, 0]);
}

function header(id: number, flags: number, counts: readonly number[]): Buffer {
  const octets = Buffer.alloc(HEADER_OCTETS);
  octets.writeUInt16BE(id, 0);
  octets.writeUInt16BE(flags, 2);
  for (const [at, count] of counts.entries()) octets.writeUInt16BE(count, 4 + 2 * at);
  return octets;
}

function write(query: Query, reply: Reply, truncated: number): Buffer {
  const { answers, authorities, authoritative, rcode } = reply;
  const flags =
    RESPONSE |
    truncated |
    (authoritative ? AUTHORITATIVE : 0) |
    (query.recursionDesired ? RECURSION_DESIRED : 0) |
    (rcode & 0x0f);
  const counts = [1, answers.length, authorities.length, query.edns === null ? 0 : 1];
  const writer = new PacketWriter();
  writer.put(header(query.id, flags, counts));
  writer.know(query.name, HEADER_OCTETS);
  writer.put(query.question);
  for (const record of [...answers, ...authorities]) putRecord(writer, record);
  if (query.edns !== null) writer.put(opt(rcode, query.edns.dnssecOk));
  return writer.end();
}

/** RFC 6891 §6.1.3: our own size, the upper bits of the rcode, version 0, and the DO bit of the query. */
function opt(rcode: number, dnssecOk: boolean): Buffer {
  const octets = Buffer.alloc(OPT_OCTETS);
  octets.writeUInt16BE(OPT, 1);
  octets.writeUInt16BE(EDNS_UDP_OCTETS, 3);
  octets.writeUInt8(rcode >> 4, 5);
  octets.writeUInt16BE(dnssecOk ? DNSSEC_OK : 0, 7);
  return octets;
}

function putRecord(writer: PacketWriter, record: ZoneRecord): void {
  writer.putName(record.name);
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(TYPE_NUMBERS[record.type], 0);
  fixed.writeUInt16BE(CLASS_IN, 2);
  fixed.writeUInt32BE(record.ttl, 4);
  writer.put(fixed);
  const start = writer.octets;
  for (const part of dataParts(record)) {
    if ("name" in part) writer.putName(part.name);
    else if ("string" in part) writer.putString(part.string);
    else writer.put(part.octets);
  }
  fixed.writeUInt16BE(writer.octets - start, 8);
}

type DataPart = { name: string } | { string: Buffer } | { octets: Buffer };

/** What a record's data are made of. Names in those of these types may be pointers (RFC 3597 §4). */
function dataParts(record: RecordData): DataPart[] {
  switch (record.type) {
    case "A":
    case "AAAA":
      return [{ octets: Buffer.from(ipaddr.parse(record.data).toByteArray()) }];
    case "NS":
      return [{ name: record.data }];
    case "TXT":
      return textStrings(record.data).map((string) => ({ string }));
    case "MX":
      return [{ octets: uint16(record.data.preference) }, { name: record.data.exchange }];
    case "HINFO":
      return [record.data.cpu, record.data.os].map((text) => ({ string: Buffer.from(text) }));
    case "SOA": {
      const { mname, rname, serial, refresh, retry, expire, minimum } = record.data;
      const numbers = [serial, refresh, retry, expire, minimum];
      return [{ name: mname }, { name: rname }, ...numbers.map((value) => ({ octets: uint32(value) }))];
    }
  }
}
