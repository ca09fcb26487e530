import { encode, type Packet, type RecordType } from "dns-packet";
import { getLogger } from "@logtape/logtape";
import type { DynamicNames, Zone } from "../../src/net/zone/answer.ts";
import type { ZoneRecord } from "../../src/net/zone/records.ts";

export const ORIGIN = "mail.test";
/** TXT data of as many bytes as a DKIM key's: two strings. */
export const KEY_TEXT = `v=DKIM1; k=rsa; p=${"k".repeat(392)}`;
export const TOKEN = "0123456789abcdefghjkmnpqrs";
export const SOA = {
  mname: `ns.${ORIGIN}`,
  rname: `hostmaster.${ORIGIN}`,
  serial: 7,
  refresh: 7200,
  retry: 900,
  expire: 1_209_600,
  minimum: 300,
};

function text(name: string, data: string): ZoneRecord {
  return { name, ttl: 3600, type: "TXT", data };
}

/** The keys of domains in a zone. */
export function keysOf(origin: string, find: DynamicNames["find"]): DynamicNames {
  return { parent: `dkim.${origin}`, find };
}

/** A small zone with every record type, a wildcard, an empty non-terminal and one key. */
export function testZone(changes: Partial<Zone> = {}): Zone {
  return {
    origin: ORIGIN,
    soa: async () => ({ name: ORIGIN, ttl: 3600, type: "SOA", data: SOA }),
    records: [
      { name: ORIGIN, ttl: 86_400, type: "NS", data: `ns.${ORIGIN}` },
      { name: ORIGIN, ttl: 3600, type: "MX", data: { preference: 10, exchange: `mx.${ORIGIN}` } },
      text(ORIGIN, "v=spf1 -all"),
      { name: `ns.${ORIGIN}`, ttl: 86_400, type: "A", data: "192.0.2.1" },
      { name: `mx.${ORIGIN}`, ttl: 3600, type: "A", data: "192.0.2.1" },
      { name: `mx.${ORIGIN}`, ttl: 3600, type: "AAAA", data: "2001:db8::1" },
      { name: `simulator.${ORIGIN}`, ttl: 3600, type: "MX", data: { preference: 0, exchange: "" } },
      text(`pr1._domainkey.onboarding.${ORIGIN}`, KEY_TEXT),
      text(`large.${ORIGIN}`, "x".repeat(1500)),
      text(`*._report._dmarc.${ORIGIN}`, "v=DMARC1"),
      text(`taken._report._dmarc.${ORIGIN}`, "not the wildcard"),
    ],
    changing: [],
    dynamic: [
      keysOf(ORIGIN, (label) =>
        Promise.resolve(label === TOKEN ? [text(`${TOKEN}.dkim.${ORIGIN}`, KEY_TEXT)] : null),
      ),
    ],
    ...changes,
  };
}

/** A logger without output. */
export function quietLog() {
  return getLogger(["test", "zone"]);
}

export interface QueryOptions {
  id?: number;
  flags?: number;
  class?: "IN" | "CH";
  /** EDNS with this payload size. If left out, no EDNS. */
  payload?: number;
  ednsVersion?: number;
  dnssecOk?: boolean;
}

/** Returns the bytes of a query, made by dns-packet. Names keep their letter case. */
export function queryOctets(name: string, type: string, options: QueryOptions = {}): Buffer {
  const { id = 4711, flags = 0, payload, ednsVersion = 0, dnssecOk = false } = options;
  const packet: Packet = {
    type: "query",
    id,
    flags,
    // dns-packet knows more types than its declarations do: ANY, and any number as UNKNOWN_65333.
    questions: [{ name, type: type as RecordType, class: options.class ?? "IN" }],
    additionals:
      payload === undefined
        ? []
        : [
            {
              name: ".",
              type: "OPT",
              udpPayloadSize: payload,
              extendedRcode: 0,
              ednsVersion,
              flags: dnssecOk ? 0x8000 : 0,
              flag_do: dnssecOk,
              options: [],
            },
          ],
  };
  const octets = encode(packet);
  // The size comes after the OPT's name and type. If it is 0, dns-packet writes another value.
  if (payload !== undefined) octets.writeUInt16BE(payload, octets.length - 8);
  return octets;
}

/** A message prefixed with its length, as TCP carries it. */
export function framed(packet: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(packet.length);
  return Buffer.concat([length, packet]);
}
