import { describe, expect, test } from "bun:test";
import { decode, type DecodedPacket } from "dns-packet";
import { manualClock } from "../../../support/manual-clock.ts";
import { createResponder } from "../../../../src/net/zone/responder.ts";
import type { Zone } from "../../../../src/net/zone/answer.ts";
import { MAX_QUERY_OCTETS } from "../../../../src/net/zone/query.ts";
import {
  KEY_TEXT,
  keysOf,
  ORIGIN,
  type QueryOptions,
  queryOctets,
  quietLog,
  SOA,
  testZone,
  TOKEN,
} from "../../../support/zone.ts";

const clock = manualClock();
const CLIENT = "192.0.2.9";
const responder = createResponder({ clock, log: quietLog(), zone: testZone() });

async function send(packet: Buffer, transport: "udp" | "tcp" = "udp"): Promise<Buffer> {
  const response = await responder(packet, transport, CLIENT);
  if (response === null) throw new Error("no answer");
  return response.octets;
}

/** The answer as dns-packet reads it, whose types leave the rcode out. */
function read(octets: Buffer): DecodedPacket & { rcode: string } {
  return decode(octets) as DecodedPacket & { rcode: string };
}

async function ask(name: string, type: string, options: QueryOptions = {}) {
  return read(await send(queryOctets(name, type, options)));
}

/** `name type data` of each record; TXT strings joined by |. */
function shown(records: readonly { name: string; type: string; data?: unknown }[] | undefined): string[] {
  return (records ?? []).map(({ name, type, data }) => {
    const said = Array.isArray(data) ? data.map(String).join("|") : (JSON.stringify(data) ?? "");
    return `${name} ${type} ${typeof data === "string" ? data : said}`;
  });
}

const strings = `${KEY_TEXT.slice(0, 255)}|${KEY_TEXT.slice(255)}`;

describe("a name with records", () => {
  const rows: [string, string, string[]][] = [
    [ORIGIN, "SOA", [`${ORIGIN} SOA ${JSON.stringify(SOA)}`]],
    [ORIGIN, "NS", [`${ORIGIN} NS ns.${ORIGIN}`]],
    [ORIGIN, "MX", [`${ORIGIN} MX {"preference":10,"exchange":"mx.${ORIGIN}"}`]],
    [ORIGIN, "TXT", [`${ORIGIN} TXT v=spf1 -all`]],
    [`mx.${ORIGIN}`, "A", [`mx.${ORIGIN} A 192.0.2.1`]],
    [`mx.${ORIGIN}`, "AAAA", [`mx.${ORIGIN} AAAA 2001:db8::1`]],
    [`simulator.${ORIGIN}`, "MX", [`simulator.${ORIGIN} MX {"preference":0,"exchange":"."}`]],
    [`${TOKEN}.dkim.${ORIGIN}`, "TXT", [`${TOKEN}.dkim.${ORIGIN} TXT ${strings}`]],
    [`a._report._dmarc.${ORIGIN}`, "TXT", [`a._report._dmarc.${ORIGIN} TXT v=DMARC1`]],
    [`a.b.c._report._dmarc.${ORIGIN}`, "TXT", [`a.b.c._report._dmarc.${ORIGIN} TXT v=DMARC1`]],
    [`*._report._dmarc.${ORIGIN}`, "TXT", [`*._report._dmarc.${ORIGIN} TXT v=DMARC1`]],
    [`taken._report._dmarc.${ORIGIN}`, "TXT", [`taken._report._dmarc.${ORIGIN} TXT not the wildcard`]],
  ];
  test.each(rows)("%s %s is answered with only those records and the AA bit", async (name, type, answers) => {
    const answer = await ask(name, type);
    expect(shown(answer.answers)).toEqual(answers);
    expect(answer).toMatchObject({ rcode: "NOERROR", flag_aa: true, flag_tc: false, flag_ra: false });
    expect([answer.authorities, answer.additionals]).toEqual([[], []]);
  });
});

describe("no data", () => {
  const rows: [string, string, string, string][] = [
    ["a type the name does not have", ORIGIN, "AAAA", "NOERROR"],
    ["an unknown type", ORIGIN, "UNKNOWN_65333", "NOERROR"],
    [
      "a name that exists only because of names below it (RFC 8020)",
      `_domainkey.onboarding.${ORIGIN}`,
      "TXT",
      "NOERROR",
    ],
    ["the same, for everything", `onboarding.${ORIGIN}`, "ANY", "NOERROR"],
    ["the parent of keys", `dkim.${ORIGIN}`, "TXT", "NOERROR"],
    ["another type of a key", `${TOKEN}.dkim.${ORIGIN}`, "A", "NOERROR"],
    ["another type of a wildcard's name", `a._report._dmarc.${ORIGIN}`, "A", "NOERROR"],
    ["a name that does not exist", `nobody.${ORIGIN}`, "A", "NXDOMAIN"],
    ["below a name with records", `below.mx.${ORIGIN}`, "A", "NXDOMAIN"],
    ["a key that does not exist", `${TOKEN.replace("0", "1")}.dkim.${ORIGIN}`, "TXT", "NXDOMAIN"],
    ["below a key", `below.${TOKEN}.dkim.${ORIGIN}`, "TXT", "NXDOMAIN"],
    // RFC 4592 §2.2.1: the closest existing name has no wildcard below it.
    ["below a name that hides the wildcard", `a.taken._report._dmarc.${ORIGIN}`, "TXT", "NXDOMAIN"],
    ["below the wildcard itself", `a.*._report._dmarc.${ORIGIN}`, "TXT", "NXDOMAIN"],
  ];
  test.each(rows)("%s", async (_rule, name, type, rcode) => {
    const answer = await ask(name, type);
    expect(answer).toMatchObject({ rcode, flag_aa: true, answers: [] });
    const [soa] = answer.authorities ?? [];
    // RFC 2308 §3: negative answers live as long as the zone's minimum says.
    expect(soa).toMatchObject({ name: ORIGIN, type: "SOA", ttl: 300, data: { minimum: 300, serial: 7 } });
  });

  test("a label with a dot in it is not two labels", async () => {
    const packet = queryOctets(`mxX${ORIGIN}`, "A");
    // `mx.mail` as one label, then `test`. As text it would look like mx.mail.test.
    packet.write(".", 15);
    expect(read(await send(packet)).rcode).toBe("REFUSED");
    const key = queryOctets(`${TOKEN}Xdkim.${ORIGIN}`, "TXT");
    key.write(".", 13 + TOKEN.length);
    expect(read(await send(key)).rcode).toBe("NXDOMAIN");
  });

  test("letters beyond ASCII keep their case (RFC 4343 §3), and a name may contain any octet", async () => {
    for (const octet of [0x00, 0x20, 0x5c, 0xc4, 0xff]) {
      const packet = queryOctets(`ZZ.${ORIGIN}`, "A");
      packet[13] = octet;
      const answer = await send(packet);
      expect(read(answer).rcode).toBe("NXDOMAIN");
      expect(answer.subarray(12, packet.length)).toEqual(packet.subarray(12));
      // The SOA's name is the end of such a question.
      expect(read(answer).authorities?.[0]).toMatchObject({ name: ORIGIN, type: "SOA" });
    }
  });

  test("a name that matches a wildcard may contain any octet, and the answer repeats it unchanged", async () => {
    for (const octet of [0x00, 0x2e, 0x5c, 0xff]) {
      const packet = queryOctets(`ZZ._report._dmarc.${ORIGIN}`, "TXT");
      packet[13] = octet;
      const answer = await send(packet);
      expect(answer.subarray(12, packet.length)).toEqual(packet.subarray(12));
      // A pointer to the question, then type TXT and class IN.
      expect(answer.subarray(packet.length, packet.length + 6).toString("hex")).toBe("c00c00100001");
    }
  });
});

describe("a question for another server", () => {
  const rows: [string, string, string, QueryOptions, string][] = [
    ["outside of the zone", "example.com", "A", {}, "REFUSED"],
    ["above the zone", "test", "NS", {}, "REFUSED"],
    ["the root", ".", "NS", {}, "REFUSED"],
    ["a name that only has the same ending", `not${ORIGIN}`, "A", {}, "REFUSED"],
    ["another class", ORIGIN, "TXT", { class: "CH" }, "REFUSED"],
    ["the whole zone (RFC 5936)", ORIGIN, "AXFR", {}, "REFUSED"],
    ["an incremental transfer (RFC 1995)", ORIGIN, "IXFR", {}, "REFUSED"],
    ["OPT as a question", ORIGIN, "OPT", {}, "FORMERR"],
    ["TSIG as a question", ORIGIN, "TSIG", {}, "FORMERR"],
    ["TKEY", ORIGIN, "TKEY", {}, "NOTIMP"],
    ["MAILB", ORIGIN, "UNKNOWN_253", {}, "NOTIMP"],
  ];
  test.each(rows)("%s", async (_rule, name, type, options, rcode) => {
    const packet = queryOctets(name, type, { ...options, payload: 4096 });
    const octets = await send(packet);
    const answer = read(octets);
    expect(answer).toMatchObject({ rcode, flag_aa: false, answers: [], authorities: [] });
    expect(octets.length).toBe(packet.length);
  });
});

describe("a packet that is not a query", () => {
  const good = queryOctets(ORIGIN, "A", { payload: 1232 });
  const with16 = (at: number, value: number): Buffer => {
    const packet = Buffer.from(good);
    packet.writeUInt16BE(value, at);
    return packet;
  };
  const optAt = good.length - 11;

  const silent: [string, Buffer, boolean][] = [
    ["empty", Buffer.alloc(0), true],
    ["shorter than a header", good.subarray(0, 11), true],
    ["an answer, which would be answered in turn for ever", with16(2, 0x8000), true],
    ["larger than any query", Buffer.concat([good, Buffer.alloc(MAX_QUERY_OCTETS - good.length + 1)]), true],
    ["as large as may be", Buffer.concat([good, Buffer.alloc(MAX_QUERY_OCTETS - good.length)]), false],
  ];
  test.each(silent)("%s", async (_rule, packet, ignored) => {
    expect((await responder(packet, "udp", CLIENT)) === null).toBe(ignored);
  });

  const headers: [string, Buffer, string, string][] = [
    ["a header alone", with16(4, 0).subarray(0, 12), "QUERY", "FORMERR"],
    ["no question", with16(4, 0), "QUERY", "FORMERR"],
    ["two questions (RFC 9619)", with16(4, 2), "QUERY", "FORMERR"],
    ["a question cut off", good.subarray(0, 20), "QUERY", "FORMERR"],
    ["a question without its class", good.subarray(0, optAt - 1), "QUERY", "FORMERR"],
    ["a record cut off", good.subarray(0, -1), "QUERY", "FORMERR"],
    ["more records than there are", with16(10, 2), "QUERY", "FORMERR"],
    ["more records than are looked at", with16(10, 65_535), "QUERY", "FORMERR"],
    ["a name of a pointer", with16(12, 0xc00c), "QUERY", "FORMERR"],
    ["a label of an unknown kind", with16(12, 0x4161), "QUERY", "FORMERR"],
    ["a label of 64 octets", with16(12, 0x4061), "QUERY", "FORMERR"],
    [
      "an OPT in another section",
      Buffer.concat([with16(8, 1).subarray(0, 10), Buffer.alloc(2), good.subarray(12)]),
      "QUERY",
      "FORMERR",
    ],
    ["two OPTs", Buffer.concat([with16(10, 2), good.subarray(optAt)]), "QUERY", "FORMERR"],
    [
      "an OPT with a name",
      Buffer.concat([good.subarray(0, optAt), Buffer.from("\x01a"), good.subarray(optAt)]),
      "QUERY",
      "FORMERR",
    ],
    [
      "an option that is cut off",
      Buffer.concat([with16(good.length - 2, 4), Buffer.from([0, 10, 0, 1])]),
      "QUERY",
      "FORMERR",
    ],
    [
      "half an option",
      Buffer.concat([with16(good.length - 2, 3), Buffer.from([0, 10, 0])]),
      "QUERY",
      "FORMERR",
    ],
    [
      "an option that extends past its OPT",
      Buffer.concat([with16(good.length - 2, 4), Buffer.from([0, 10, 0, 2, 1, 2])]),
      "QUERY",
      "FORMERR",
    ],
    [
      "an OPT whose name is a pointer to an octet of 0",
      Buffer.concat([good.subarray(0, optAt), Buffer.from([0xc0, 6]), good.subarray(optAt + 1)]),
      "QUERY",
      "FORMERR",
    ],
    ["NOTIFY", with16(2, 4 << 11), "NOTIFY", "NOTIMP"],
    ["UPDATE", with16(2, 5 << 11), "UPDATE", "NOTIMP"],
    ["an unknown operation", with16(2, 15 << 11), "OPCODE_15", "NOTIMP"],
  ];
  test.each(headers)("%s is answered with only a header", async (_rule, packet, opcode, rcode) => {
    const octets = await send(packet);
    expect(octets).toHaveLength(12);
    const { id, opcode: echoed, rcode: said } = decode(octets) as unknown as Record<string, unknown>;
    expect({ id, opcode: echoed, rcode: said }).toEqual({ id: 4711, opcode, rcode });
  });

  test("a name of 255 octets is read, one of 256 is not", async () => {
    const labels = (last: number): string => [63, 63, 63, last].map((length) => "a".repeat(length)).join(".");
    expect((await ask(labels(61), "A")).rcode).toBe("REFUSED");
    expect(await send(queryOctets(labels(62), "A"))).toHaveLength(12);
  });

  test.each([
    ["a key of no protocol", 48, "01000708"],
    ["a text whose string extends past its end", 16, "0909"],
  ])("%s after the question is ignored, whatever it contains", async (_what, type, data) => {
    const [fixed, octets] = [Buffer.alloc(11), Buffer.from(data, "hex")];
    fixed.writeUInt16BE(type, 1);
    fixed.writeUInt16BE(octets.length, 9);
    const packet = Buffer.concat([with16(10, 2).subarray(0, optAt), fixed, octets, good.subarray(optAt)]);
    expect(read(await send(packet)).additionals).toMatchObject([{ type: "OPT" }]);
  });

  test("octets after the message are ignored", async () => {
    expect(read(await send(Buffer.concat([good, Buffer.from("more")]))).rcode).toBe("NOERROR");
  });
});

describe("EDNS (RFC 6891)", () => {
  test("is answered if the query has it, with our size and the client's DO bit", async () => {
    for (const dnssecOk of [true, false]) {
      const [opt, ...more] = (await ask(ORIGIN, "MX", { payload: 4096, dnssecOk })).additionals ?? [];
      expect(opt).toMatchObject({ type: "OPT", udpPayloadSize: 1232, ednsVersion: 0, flag_do: dnssecOk });
      expect(more).toEqual([]);
    }
    expect((await ask(ORIGIN, "MX")).additionals).toEqual([]);
  });

  test("EDNS of a later version is answered with our version and no data", async () => {
    const answer = await ask(ORIGIN, "MX", { payload: 4096, ednsVersion: 1 });
    expect(answer.additionals?.[0]).toMatchObject({ extendedRcode: 1, ednsVersion: 0 });
    expect(answer).toMatchObject({ rcode: "NOERROR", answers: [] });
  });

  test("options that we do not know are ignored", async () => {
    const packet = queryOctets(ORIGIN, "MX", { payload: 4096 });
    packet.writeUInt16BE(12, packet.length - 2);
    const cookie = Buffer.from([0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(read(await send(Buffer.concat([packet, cookie]))).answers).toHaveLength(1);
  });
});

describe("the size of an answer", () => {
  const LARGE = `large.${ORIGIN}`;
  const rows: [string, QueryOptions, "udp" | "tcp", boolean][] = [
    ["1500 octets by UDP without EDNS", {}, "udp", true],
    ["for a client that takes 4096, because we send at most 1232", { payload: 4096 }, "udp", true],
    ["by TCP", {}, "tcp", false],
  ];
  test.each(rows)("%s", async (_rule, options, transport, truncated) => {
    const packet = queryOctets(LARGE, "TXT", options);
    const octets = await send(packet, transport);
    const answer = read(octets);
    expect(answer).toMatchObject({ flag_tc: truncated, rcode: "NOERROR", authorities: [] });
    expect(answer.answers).toHaveLength(truncated ? 0 : 1);
    if (truncated) expect(octets.length).toBeLessThanOrEqual(packet.length);
  });

  test("the size of an answer is cut at the exact octet, never below 512 and never above 1232", async () => {
    // The answer's octets besides the text: header, question, pointer, fixed part, one length octet a string, OPT.
    const sizes: [QueryOptions, number][] = [
      [{}, 512],
      [{ payload: 0 }, 512],
      [{ payload: 511 }, 512],
      [{ payload: 700 }, 700],
      [{ payload: 1232 }, 1232],
      [{ payload: 65_535 }, 1232],
    ];
    for (const [options, limit] of sizes) {
      const name = `t.${ORIGIN}`;
      const query = queryOctets(name, "TXT", options);
      const roomFor = limit - query.length - 12;
      const text = roomFor - Math.ceil(roomFor / 256);
      for (const [extra, truncated] of [
        [0, false],
        [1, true],
      ] as const) {
        const zone = testZone({ records: [{ name, ttl: 1, type: "TXT", data: "x".repeat(text + extra) }] });
        const response = await createResponder({ clock, log: quietLog(), zone })(query, "udp", CLIENT);
        expect(response?.octets.length).toBe(truncated ? query.length : limit);
      }
    }
  });

  test("the size of an answer of an unknown name fits a datagram of 512 octets, for a zone's name of up to 90", async () => {
    for (const [octets, truncated] of [
      [90, false],
      [91, true],
    ] as const) {
      const origin = `${"o".repeat(octets - 50)}.${"p".repeat(49)}`;
      const data = { ...SOA, mname: `ns.${origin}`, rname: `hostmaster.${origin}` };
      const soa = async () => ({ name: origin, ttl: 1, type: "SOA" as const, data });
      const zone = testZone({ origin, soa, records: [], dynamic: [keysOf(origin, async () => null)] });
      // 253 letters and dots: the longest name there is.
      const label = "a".repeat(63);
      const name = `${"a".repeat(253 - 2 * 64 - octets - 1)}.${label}.${label}.${origin}`;
      const query = queryOctets(name, "A", { payload: 512 });
      const response = await createResponder({ clock, log: quietLog(), zone })(query, "udp", CLIENT);
      expect(read(response?.octets ?? query)).toMatchObject({ rcode: "NXDOMAIN", flag_tc: truncated });
    }
  });

  test("a DKIM key of 2048 bits fits a datagram without EDNS", async () => {
    const answer = await ask(`${TOKEN}.dkim.${ORIGIN}`, "TXT");
    expect([answer.flag_tc, answer.answers?.length]).toEqual([false, 1]);
  });
});

describe("the question", () => {
  test("the question is repeated letter by letter, and names in the answer keep their own case (0x20)", async () => {
    const name = "mX.MaIl.tEsT";
    const answer = await ask(name, "A");
    expect(answer.questions?.[0]?.name).toBe(name);
    expect(answer.answers?.[0]?.name).toBe(name);
  });

  test("a query for ANY gets one small record (RFC 8482)", async () => {
    const answer = await ask(ORIGIN, "ANY");
    expect(shown(answer.answers)).toEqual([`${ORIGIN} HINFO {"cpu":"RFC8482","os":""}`]);
    expect((await ask(`no.${ORIGIN}`, "ANY")).rcode).toBe("NXDOMAIN");
  });

  test("the question keeps id and RD; RA, AD and CD are off", async () => {
    for (const [flags, rd] of [
      [0x0100, true],
      [0x0030, false],
    ] as const) {
      const answer = await ask(ORIGIN, "MX", { id: 65_535, flags });
      const off = { flag_ra: false, flag_ad: false, flag_cd: false };
      expect(answer).toMatchObject({ id: 65_535, flag_rd: rd, ...off });
    }
  });
});

test("a zone whose lookup fails answers SERVFAIL, and never that a name does not exist", async () => {
  const clock = manualClock();
  const errors: unknown[] = [];
  const log = Object.assign(Object.create(quietLog()), { error: (...said: unknown[]) => errors.push(said) });
  const zone = testZone({
    dynamic: [keysOf(ORIGIN, () => Promise.reject(new Error("the database is gone")))],
  });
  const broken = createResponder({ clock, log, zone });
  const askKey = async () => {
    const response = await broken(queryOctets(`${TOKEN}.dkim.${ORIGIN}`, "TXT"), "udp", CLIENT);
    return read(response?.octets ?? Buffer.alloc(12));
  };
  const answer = await askKey();
  expect(answer).toMatchObject({ rcode: "SERVFAIL", flag_aa: false, authorities: [] });
  // Logged once a minute, however many queries come.
  await askKey();
  clock.advance(59_999);
  await askKey();
  expect(errors).toHaveLength(1);
  clock.advance(1);
  await askKey();
  expect(errors).toHaveLength(2);
});

const FAULTS: [string, Partial<Zone>, string][] = [
  ["an invalid address", { records: [{ name: ORIGIN, ttl: 1, type: "A", data: "no address" }] }, ORIGIN],
  [
    "a record of another name",
    {
      dynamic: [keysOf(ORIGIN, async () => [{ name: `mx.${ORIGIN}`, ttl: 1, type: "A", data: "192.0.2.1" }])],
    },
    `x.dkim.${ORIGIN}`,
  ],
];
test.each(FAULTS)("a fault of ours is logged and gets no answer: %s", async (_fault, changes, name) => {
  const errors: unknown[] = [];
  const log = Object.assign(Object.create(quietLog()), { error: (...said: unknown[]) => errors.push(said) });
  const faulty = createResponder({ clock: manualClock(), log, zone: testZone(changes) });
  expect(await faulty(queryOctets(name, "A"), "udp", CLIENT)).toBeNull();
  expect(errors).toHaveLength(1);
});
