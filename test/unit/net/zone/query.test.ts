import { describe, expect, test } from "bun:test";
import { type Answer, decode, encode, type PacketOpt, type RecordClass, type RecordType } from "dns-packet";
import { type Query, readQuery } from "../../../../src/net/zone/query.ts";
import { type Random, seeded } from "../../../support/peers/varied-mail.ts";
import { ORIGIN, queryOctets } from "../../../support/zone.ts";

const QUERIES = 3000;
const SEED = 20_261_122;
const HEADER_OCTETS = 12;
const QUESTION_TAIL_OCTETS = 4;

/** dns-packet knows more types than its declarations list. */
const TYPES = ["A", "TXT", "SOA", "MX", "OPT", "IXFR", "ANY", "UNKNOWN_253", "UNKNOWN_65280"] as RecordType[];
const CLASSES: readonly RecordClass[] = ["IN", "IN", "IN", "CH", "ANY"];
const OPTIONS: readonly PacketOpt[] = [
  { code: 8, ip: "192.0.2.0", sourcePrefixLength: 24 },
  { code: 11, timeout: 5 },
  { code: 12, length: 40 },
  { code: 14, tags: [1, 2] },
];
const OTHERS: readonly Answer[] = [
  { type: "A", name: "a.example", data: "192.0.2.1" },
  { type: "NSEC", name: ".", data: { nextDomain: "a.", rrtypes: ["A", "TXT"] } },
  { type: "NULL", name: "key", data: Buffer.alloc(30) },
];

function below(random: Random, end: number): number {
  return Math.floor(random() * end);
}

function some<T>(random: Random, from: readonly T[]): T[] {
  return from.filter(() => random() < 0.4);
}

/** Up to five labels of octets made by `octet`. */
function labelsOf(random: Random, octet: () => number): Buffer[] {
  const label = (): Buffer => Buffer.from(Array.from({ length: 1 + below(random, 30) }, octet));
  return Array.from({ length: below(random, 6) }, label);
}

function queryOf(packet: Buffer): Query {
  const incoming = readQuery(packet);
  if (incoming?.kind !== "query") throw new Error(`${packet.toString("hex")} is read as ${incoming?.kind}`);
  return incoming.query;
}

/** The end of the only question of a packet, whose name has that many letters and dots. */
function questionEnd(name: string): number {
  return HEADER_OCTETS + (name === "" ? 1 : name.length + 2) + QUESTION_TAIL_OCTETS;
}

test(`${QUERIES} queries made by dns-packet are read correctly`, () => {
  const random = seeded(SEED);
  const letters = Buffer.from("ABCXYZabcxyz0189-_*");
  for (let left = QUERIES; left > 0; left--) {
    const name = labelsOf(random, () => letters[below(random, letters.length)] ?? 0).join(".");
    const [type, asClass] = [TYPES[below(random, TYPES.length)], CLASSES[below(random, CLASSES.length)]];
    if (type === undefined || asClass === undefined) throw new Error("out of range");
    const [id, recursionDesired, dnssecOk] = [below(random, 0x10000), random() < 0.5, random() < 0.5];
    const said = { udpPayloadSize: 1 + below(random, 0xffff), ednsVersion: below(random, 256) };
    const bits = { extendedRcode: 0, flags: dnssecOk ? 0x8000 : 0, flag_do: dnssecOk };
    const options = some(random, OPTIONS);
    const opt: Answer[] = some(random, [{ type: "OPT", name: ".", ...said, ...bits, options }]);
    const packet = encode({
      type: "query",
      id,
      flags: recursionDesired ? 0x0100 : 0,
      questions: [{ name, type, class: asClass }],
      answers: some(random, OTHERS),
      authorities: some(random, OTHERS.slice(1)),
      additionals: [...some(random, OTHERS.slice(2)), ...opt],
    });
    expect(queryOf(packet)).toEqual({
      id,
      recursionDesired,
      type,
      class: asClass,
      name: name.toLowerCase(),
      question: packet.subarray(HEADER_OCTETS, questionEnd(name)),
      edns: opt.length === 0 ? null : { type: "OPT", name: ".", ...said, ...bits, options: [] },
      signature: null,
      knownSerial: null,
    });
  }
});

describe("the name asked for", () => {
  function nameOf(labels: readonly Buffer[]): string {
    const wire = labels.flatMap((label) => [Buffer.from([label.length]), label]);
    const root = queryOctets(".", "TXT");
    const [header, rest] = [root.subarray(0, HEADER_OCTETS), root.subarray(HEADER_OCTETS)];
    return queryOf(Buffer.concat([header, ...wire, rest])).name;
  }

  test("the name asked for has a dot only between labels, and keeps every octet of its labels", () => {
    const random = seeded(SEED);
    for (let left = QUERIES; left > 0; left--) {
      const labels = labelsOf(random, () => below(random, 256));
      const masked = labels.map((label) =>
        label
          .toString("latin1")
          .replace(/[^!-~]|[.\\]/g, "\x7f")
          .toLowerCase(),
      );
      expect(nameOf(labels)).toBe(masked.join("."));
    }
  });

  test.each([
    ["a dot", "mx.mail", "mx\x7fmail"],
    ["the Kelvin sign, a k in lower case", "d\u212aim", "d\x7f\x7f\x7fim"],
    ["an escaped dot", "mx\\.mail", "mx\x7f\x7fmail"],
    ["a line's end", "mx\n", "mx\x7f"],
  ])("%s within a label is DEL", (_what, label, name) => {
    expect(nameOf([Buffer.from(label)])).toBe(name);
  });
});

test("eight records after the question are ignored, with nine the query is refused", () => {
  const extras = (count: number): Buffer =>
    encode({
      questions: [{ name: ORIGIN, type: "A" }],
      additionals: Array.from({ length: count }, () => ({ type: "A", name: ".", data: "192.0.2.1" })),
    });
  expect(queryOf(extras(8)).name).toBe(ORIGIN);
  expect(readQuery(extras(9))).toEqual({ kind: "refusal", id: 0, flags: 0, rcode: 1 });
});

describe("a record that dns-packet would refuse, and that we ignore", () => {
  const good = queryOctets(ORIGIN, "A", { payload: 1232 });
  const optAt = good.length - 11;
  /** A record named by the root, before the OPT. */
  const withRecord = (type: number, data: number[]): Buffer => {
    const record = Buffer.from([0, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length, ...data]);
    const packet = Buffer.concat([good.subarray(0, optAt), record, good.subarray(optAt)]);
    packet.writeUInt16BE(2, 10);
    return packet;
  };
  const withOptions = (octets: number[]): Buffer => {
    const packet = Buffer.concat([good, Buffer.from(octets)]);
    packet.writeUInt16BE(octets.length, good.length - 2);
    return packet;
  };
  const rows: [string, Buffer][] = [
    ["a client subnet cut off", withOptions([0, 8, 0, 1, 0])],
    ["a key tag of half a tag", withOptions([0, 14, 0, 1, 0])],
    ["a DNSKEY of another protocol", withRecord(48, [1, 0, 7, 8])],
    ["a fingerprint of an unknown length", withRecord(44, [1, 9])],
  ];
  test.each(rows)("%s", (_what, packet) => {
    expect(() => decode(packet)).toThrow();
    expect(queryOf(packet)).toEqual(queryOf(good));
  });
});
