import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { decode } from "dns-packet";
import { createResponder } from "../../../../src/net/zone/responder.ts";
import { manualClock } from "../../../support/manual-clock.ts";
import { type Random, seeded } from "../../../support/peers/varied-mail.ts";
import { KEY_TEXT, keysOf, ORIGIN, queryOctets, quietLog, testZone, TOKEN } from "../../../support/zone.ts";

setDefaultTimeout(60_000);

const CLIENT = "192.0.2.9";
const MUTATIONS = 100_000;
const SEED = 20_261_121;
/** Bytes that an answer to a non-query may have: a header. */
const HEADER_OCTETS = 12;

const responder = createResponder({ clock: manualClock(), log: quietLog(), zone: testZone() });

const SEEDS: readonly Buffer[] = [
  queryOctets(ORIGIN, "SOA"),
  queryOctets(ORIGIN, "ANY", { payload: 1232 }),
  queryOctets(`${TOKEN}.dkim.${ORIGIN}`, "TXT", { payload: 4096, dnssecOk: true }),
  queryOctets(`a.b._report._dmarc.${ORIGIN}`, "TXT", { payload: 512 }),
  queryOctets(`large.${ORIGIN}`, "TXT", { payload: 4096 }),
  queryOctets("example.com", "A", { ednsVersion: 1, payload: 1232 }),
  queryOctets(".", "NS"),
];

/** Octets changed, bits flipped, cut off, doubled, inserted, or two packets joined. */
const CHANGES: readonly ((packet: Buffer, random: Random) => Buffer)[] = [
  (packet, random) => {
    packet[at(packet, random)] = Math.floor(random() * 256);
    return packet;
  },
  (packet, random) => {
    const where = at(packet, random);
    packet[where] = (packet[where] ?? 0) ^ (1 << Math.floor(random() * 8));
    return packet;
  },
  (packet, random) => packet.subarray(0, at(packet, random)),
  (packet, random) => Buffer.concat([packet, packet.subarray(at(packet, random))]),
  (packet, random) => {
    const where = at(packet, random);
    const noise = Buffer.from(Array.from({ length: 1 + Math.floor(random() * 8) }, () => random() * 256));
    return Buffer.concat([packet.subarray(0, where), noise, packet.subarray(where)]);
  },
  // Parsers fail at lengths and counts, so one of two octets becomes the largest or smallest value.
  (packet, random) => {
    const where = at(packet, random);
    if (where + 2 <= packet.length) packet.writeUInt16BE(random() < 0.5 ? 0xffff : 0, where);
    return packet;
  },
];

function at(packet: Buffer, random: Random): number {
  return Math.floor(random() * packet.length);
}

function mutated(random: Random): Buffer {
  let packet = Buffer.from(SEEDS[Math.floor(random() * SEEDS.length)] ?? []);
  for (let changes = 1 + Math.floor(random() * 4); changes > 0; changes--)
    packet = Buffer.from(CHANGES[Math.floor(random() * CHANGES.length)]?.(packet, random) ?? packet);
  return packet;
}

test(`none of ${MUTATIONS} broken packets throws, and no answer exceeds its limit`, async () => {
  const random = seeded(SEED);
  const answered = { nothing: 0, header: 0, reply: 0 };
  for (let packet = mutated(random), left = MUTATIONS; left > 0; left--, packet = mutated(random)) {
    const response = await responder(packet, "udp", CLIENT);
    if (response === null) {
      // Silence is only for packets that are not DNS queries at all.
      if (packet.length >= HEADER_OCTETS) expect((packet[2] ?? 0) & 0x80).toBe(0x80);
      answered.nothing++;
      continue;
    }
    const { octets } = response;
    if (octets.length === HEADER_OCTETS) answered.header++;
    else answered.reply++;
    if (octets.length > 1232 || octets.readUInt16BE(0) !== packet.readUInt16BE(0))
      throw failed(packet, octets);
    if (((octets[2] ?? 0) & 0x80) === 0) throw failed(packet, octets);
    // A second decoder reads every answer to its end.
    if (decode(octets).type !== "response" || decode.bytes !== octets.length) throw failed(packet, octets);
  }
  // Every outcome occurs often, so the test covers all of them.
  expect(Math.min(...Object.values(answered))).toBeGreaterThan(MUTATIONS / 50);
});

function failed(packet: Buffer, octets: Buffer): Error {
  return new Error(`${packet.toString("hex")} is answered by ${octets.toString("hex")}`);
}

test("random names that are not tokens never cause a database query", async () => {
  let lookups = 0;
  const keys = keysOf(ORIGIN, () => {
    lookups++;
    return Promise.resolve(null);
  });
  const counting = createResponder({
    clock: manualClock(),
    log: quietLog(),
    zone: testZone({ dynamic: [keys] }),
  });
  for (const name of [`x.${TOKEN}.dkim.${ORIGIN}`, `x.${ORIGIN}`, "x.dkim.example.com"])
    await counting(queryOctets(name, "TXT"), "udp", CLIENT);
  expect(lookups).toBe(0);
});

describe("an answer by UDP compared with its query", () => {
  // The largest ratio of octets sent to octets received, by kind. IP and UDP headers on both sides lower it. The
  // SOA of a negative answer has its two names in full.
  const rows: [string, string, string, number][] = [
    ["a DKIM key, the largest there is to ask for", `${TOKEN}.dkim.${ORIGIN}`, "TXT", 8.4],
    ["everything (RFC 8482)", ORIGIN, "ANY", 1.9],
    ["no such name", `n.${ORIGIN}`, "A", 3.4],
    ["no such record", ORIGIN, "AAAA", 3.6],
    ["outside of the zone", "example.com", "ANY", 1],
    ["the whole zone", ORIGIN, "AXFR", 1],
    ["a larger answer than a datagram's", `large.${ORIGIN}`, "TXT", 1],
  ];
  test.each(rows)("%s", async (_kind, name, type, factor) => {
    for (const payload of [undefined, 512, 4096]) {
      const query = queryOctets(name, type, payload === undefined ? {} : { payload });
      const response = await responder(query, "udp", CLIENT);
      const octets = response?.octets.length ?? 0;
      expect(octets).toBeGreaterThanOrEqual(query.length);
      expect(octets / query.length).toBeLessThanOrEqual(factor);
      // A client over its limit gets an answer no larger than its query.
      expect(response?.truncated()?.length ?? 0).toBeLessThanOrEqual(query.length);
    }
  });

  test("repeats the name once: a key's answer is its query, the key, and 14 octets", async () => {
    const query = queryOctets(`${TOKEN}.dkim.${ORIGIN}`, "TXT");
    const response = await responder(query, "udp", CLIENT);
    // A pointer, type, class, TTL, length; one length octet for each of the two strings.
    expect(response?.octets.length).toBe(query.length + 12 + 2 + KEY_TEXT.length);
  });
});
