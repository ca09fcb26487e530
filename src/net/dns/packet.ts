import {
  type Answer,
  AUTHENTIC_DATA,
  decode,
  type DecodedPacket,
  DNSSEC_OK,
  encode,
  type OptAnswer,
  RECURSION_DESIRED,
  type RecordType,
  TRUNCATED_RESPONSE,
} from "dns-packet";
import { COUNTS_AT, HEADER_OCTETS, isWellFormed } from "./packet-layout.ts";

/** A question to a server: lower-case ASCII name without final dot. */
export interface DnsQuestion {
  name: string;
  type: RecordType;
}

/** A decoded answer to our question, with records of class IN only. */
export interface DnsAnswer {
  /** RFC 1035 §4.1.1: 0 no error, 1 format error, 2 server failure, 3 no such name, 4 not implemented, 5 refused. */
  rcode: number;
  /** The AD bit (RFC 4035 §3.2.3): the server has verified the answer by DNSSEC. */
  authentic: boolean;
  /** The RA bit (RFC 1035 §4.1.1): the server asks others for what it does not hold. */
  recursive: boolean;
  answers: readonly Answer[];
  authorities: readonly Answer[];
  octets: number;
  /** The name of the question as the server repeats it. */
  spelling: string;
}

/** RFC 6891 §6.2.5 with the value of DNS Flag Day 2020: large enough for DKIM keys, small enough to avoid fragments. */
export const EDNS_UDP_OCTETS = 1232;
/** RFC 1035 §2.3.4. */
const MAX_NAME_OCTETS = 253;
const MAX_LABEL_OCTETS = 63;
/** Host names and service labels use fewer characters, but any visible ASCII may be asked for. */
const PRINTABLE = /^[\x21-\x7e]+$/;
const RCODE_MASK = 0x0f;

/** Returns the name in lower case without final dot, or null if it cannot be encoded (RFC 1035 §2.3.4). */
export function askableName(name: string): string | null {
  const bare = (name.endsWith(".") ? name.slice(0, -1) : name).toLowerCase();
  if (bare.length === 0 || bare.length > MAX_NAME_OCTETS || !PRINTABLE.test(bare)) return null;
  const labels = bare.split(".");
  return labels.every((label) => label.length > 0 && label.length <= MAX_LABEL_OCTETS) ? bare : null;
}

/** Normalizes a name from an answer for comparison. The root is "". */
export function canonicalName(name: string): string {
  return (name.endsWith(".") ? name.slice(0, -1) : name).toLowerCase();
}

/** Encodes a recursive query in the case of `question`. AD asks for the AD bit of the answer (RFC 6840 §5.7). */
export function encodeQuery(question: DnsQuestion, id: number, edns: boolean): Buffer {
  return encode({
    type: "query",
    id,
    flags: RECURSION_DESIRED | AUTHENTIC_DATA,
    questions: [{ name: question.name, type: question.type, class: "IN" }],
    additionals: edns ? [optRecord(0, false)] : [],
  });
}

/** Creates our EDNS record, as client and as server: our size, version 0, no options (RFC 6891 §6.1.2). */
export function optRecord(extendedRcode: number, dnssecOk: boolean): OptAnswer {
  return {
    name: ".",
    type: "OPT",
    udpPayloadSize: EDNS_UDP_OCTETS,
    extendedRcode,
    ednsVersion: 0,
    flags: dnssecOk ? DNSSEC_OK : 0,
    flag_do: dnssecOk,
    options: [],
  };
}

/**
 * Decodes the answer in a packet. Returns null if it is not a well-formed answer to this question with this id. Such
 * packets are strays or forgeries (cache poisoning, RFC 5452 §9.1): the caller keeps waiting for the real one.
 */
export function decodeAnswer(packet: Buffer, question: DnsQuestion, id: number): DnsAnswer | null {
  if (packet.length < 2 || packet.readUInt16BE(0) !== id) return null;
  const decoded = tryDecode(packet);
  if (decoded === null || decoded.type !== "response" || !echoes(decoded, question)) return null;
  return {
    rcode: (decoded.flags ?? 0) & RCODE_MASK,
    authentic: decoded.flag_ad,
    recursive: decoded.flag_ra,
    answers: inClass(decoded.answers),
    authorities: inClass(decoded.authorities),
    octets: packet.length,
    spelling: decoded.questions?.[0]?.name ?? "",
  };
}

/**
 * Returns true if the packet answers the question and is truncated (TC). Some servers cut within a record, so nothing
 * after the question is read (RFC 2181 §9).
 */
export function isCutOff(packet: Buffer, question: DnsQuestion, id: number): boolean {
  if (packet.length < HEADER_OCTETS || (packet.readUInt16BE(2) & TRUNCATED_RESPONSE) === 0) return false;
  const questionAlone = Buffer.from(packet).fill(0, COUNTS_AT + 2, HEADER_OCTETS);
  return decodeAnswer(questionAlone, question, id) !== null;
}

function tryDecode(packet: Buffer): DecodedPacket | null {
  if (!isWellFormed(packet)) return null;
  try {
    return decode(packet);
  } catch {
    return null;
  }
}

function echoes(decoded: DecodedPacket, question: DnsQuestion): boolean {
  const [echoed, ...more] = decoded.questions ?? [];
  return (
    echoed !== undefined &&
    more.length === 0 &&
    echoed.type === question.type &&
    (echoed.class ?? "IN") === "IN" &&
    canonicalName(echoed.name) === question.name
  );
}

function inClass(answers: readonly Answer[] | undefined): Answer[] {
  return (answers ?? []).filter((answer) => answer.type !== "OPT" && (answer.class ?? "IN") === "IN");
}
