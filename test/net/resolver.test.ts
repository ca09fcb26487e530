import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  type Answer,
  encode,
  type Packet,
  type Question,
  type RecordType,
  TRUNCATED_RESPONSE,
} from "dns-packet";
import { readdirSync } from "node:fs";
import { isIP } from "node:net";
import { systemClock } from "../../src/clock.ts";
import {
  addressesOfHost,
  resolveAddresses,
  resolveCname,
  resolveMx,
  resolvePtr,
  resolveTxt,
} from "../../src/net/dns/lookups.ts";
import { nodeStyleResolver } from "../../src/net/dns/node-style-resolver.ts";
import { createResolver, type Resolver, type ResolverOptions } from "../../src/net/dns/resolver.ts";
import { decodeAnswer } from "../../src/net/dns/packet.ts";
import { type Forger, startDns, type TestDns } from "../support/dns.ts";
import { manualClock } from "../support/manual-clock.ts";
import { until } from "../support/poll.ts";

/** Time limit for a server that answers, long enough for any machine. */
const PATIENT_MS = 20_000;
/** Time limit for a server that never answers. */
const SHORT_MS = 40;
/** Time limit for a server that answers by UDP alone. */
const DEAF_MS = 500;
let dns: TestDns;

beforeEach(async () => {
  dns = await startDns(
    { name: "a.test", type: "A", data: "192.0.2.1" },
    { name: "a.test", type: "AAAA", data: "2001:db8::1" },
    { name: "a.test", type: "MX", data: { preference: 20, exchange: "MX2.a.test" } },
    { name: "a.test", type: "MX", data: { preference: 10, exchange: "mx1.a.test" } },
    { name: "a.test", type: "TXT", data: ["v=DKIM1; p=AAAA", "BBBB"] },
    { name: "a.test", type: "TXT", data: ["second"] },
    { name: "null.test", type: "MX", data: { preference: 0, exchange: "." } },
    { name: "www.test", type: "CNAME", data: "alias.test" },
    { name: "alias.test", type: "CNAME", data: "a.test" },
    { name: "loop1.test", type: "CNAME", data: "loop2.test" },
    { name: "loop2.test", type: "CNAME", data: "loop1.test" },
    { name: "out.test", type: "CNAME", data: "gone.test" },
    { name: "v6only.test", type: "AAAA", data: "2001:db8::2" },
    { name: "1.2.0.192.in-addr.arpa", type: "PTR", data: "a.test" },
    { name: "long.test", type: "A", data: "192.0.2.9", ttl: 600 },
  );
});
afterEach(() => dns.stop());

const tryTimeoutOf = (behaviour: string) => ({
  tryTimeoutMs: behaviour === "silent" ? SHORT_MS : PATIENT_MS,
});

function resolverOver(options: Partial<ResolverOptions> = {}, clock = systemClock): Resolver {
  return createResolver({ clock }, { servers: [dns], tryTimeoutMs: PATIENT_MS, tries: 1, ...options });
}

describe("the result of a lookup", () => {
  const rows: [name: string, type: RecordType, status: string][] = [
    ["a.test", "A", "ok"],
    ["A.TEST.", "A", "ok"],
    ["a.test", "SRV", "nodata"],
    ["test", "A", "nodata"],
    ["none.test", "A", "nxdomain"],
    ["www.test", "A", "ok"],
    ["www.test", "CNAME", "ok"],
    ["out.test", "A", "nxdomain"],
    ["loop1.test", "A", "failure"],
    ["", "A", "nxdomain"],
    ["a..test", "A", "nxdomain"],
    [`${"x".repeat(63)}.test`, "A", "nxdomain"],
    [`${"x".repeat(64)}.test`, "A", "nxdomain"],
    ["white space.test", "TXT", "nxdomain"],
    [`${"x.".repeat(127)}test`, "A", "nxdomain"],
  ];
  test.each(rows)("%p %s is %s", async (name, type, status) => {
    expect((await resolverOver().resolve(name, type)).status).toBe(status as "ok");
  });

  test("a name that is invalid on the wire is not queried", async () => {
    await resolverOver().resolve(`${"x".repeat(64)}.test`, "A");
    expect(dns.count()).toBe(0);
  });

  test("the AD bit of the answer is kept", async () => {
    expect(await resolverOver().resolve("a.test", "A")).toMatchObject({ authentic: false });
    dns.authentic(true);
    expect(await resolverOver().resolve("a.test", "A")).toMatchObject({ authentic: true });
  });

  test.each([
    [true, true, true],
    [true, false, false],
    [false, true, false],
  ])(
    "the result of a lookup of an alias with AD %p, followed to an answer with AD %p, it is %p",
    async (first, last, all) => {
      const AD = 1 << 5;
      // The server stops at the alias, and leaves the rest to the client.
      dns.forge((answer) => {
        const isAlias = answer.questions?.[0]?.name.toLowerCase() === "alias.test";
        const flags = (answer.flags ?? 0) | ((isAlias ? first : last) ? AD : 0);
        return [encode({ ...answer, flags, answers: answer.answers?.slice(0, 1), authorities: [] })];
      });
      const resolver = resolverOver();
      // The second time the alias target is in the cache.
      for (let time = 0; time < 2; time++)
        expect(await resolver.resolve("alias.test", "A")).toMatchObject({ status: "ok", authentic: all });
      expect(await resolver.resolve("a.test", "A")).toMatchObject({ authentic: last });
    },
  );

  test("localhost names are loopback without a query", async () => {
    for (const name of ["localhost", "x.localhost", "LOCALHOST."])
      expect(await resolveAddresses(resolverOver(), name)).toMatchObject({ records: ["127.0.0.1", "::1"] });
    expect(dns.count()).toBe(0);
  });
});

describe("typed lookups", () => {
  test("the strings of one TXT record are joined, and records stay separate", async () => {
    const found = await resolveTxt(resolverOver(), "a.test");
    expect(found).toMatchObject({ status: "ok", records: ["v=DKIM1; p=AAAABBBB", "second"] });
  });

  test("MX exchanges are lower-case, a null MX is the empty name", async () => {
    expect(await resolveMx(resolverOver(), "a.test")).toMatchObject({
      records: [
        { preference: 20, exchange: "mx2.a.test" },
        { preference: 10, exchange: "mx1.a.test" },
      ],
    });
    expect(await resolveMx(resolverOver(), "null.test")).toMatchObject({ records: [{ exchange: "" }] });
  });

  test("addresses are IPv4 first, through aliases, and one family is enough", async () => {
    const resolver = resolverOver();
    expect(await resolveAddresses(resolver, "www.test")).toMatchObject({
      records: ["192.0.2.1", "2001:db8::1"],
    });
    expect(await resolveAddresses(resolver, "v6only.test")).toMatchObject({ records: ["2001:db8::2"] });
    expect(await resolveAddresses(resolver, "null.test")).toEqual({ status: "nodata" });
    expect(await resolveAddresses(resolver, "none.test")).toEqual({ status: "nxdomain" });
  });

  test("a configured host gives its own address, those of its name, or none if it is unknown", async () => {
    const addresses = (host: string) => addressesOfHost(resolverOver(), host);
    expect(await addresses("192.0.2.25")).toEqual(["192.0.2.25"]);
    expect(await addresses("v6only.test")).toEqual(["2001:db8::2"]);
    expect(await addresses("none.test")).toBeNull();
  });

  test("CNAME and PTR give names", async () => {
    expect(await resolveCname(resolverOver(), "www.test")).toMatchObject({ records: ["alias.test"] });
    expect(await resolvePtr(resolverOver(), "192.0.2.1")).toMatchObject({ records: ["a.test"] });
    expect(await resolvePtr(resolverOver(), "not an ip")).toEqual({ status: "nxdomain" });
  });
});

describe("servers that fail", () => {
  test.each([
    ["servfail", "servfail"],
    ["refused", "refused"],
    ["silent", "timeout"],
  ] as const)("%s is a failure: %s", async (behaviour, reason) => {
    dns.behave(behaviour);
    const resolver = resolverOver(tryTimeoutOf(behaviour));
    expect(await resolver.resolve("a.test", "A")).toEqual({ status: "failure", reason });
  });

  test("a closed port is unreachable at once, without a timeout", async () => {
    dns.stop();
    const resolver = resolverOver();
    expect(await resolver.resolve("a.test", "A")).toEqual({ status: "failure", reason: "unreachable" });
  });

  test.each(["servfail", "refused", "silent"] as const)(
    "the next server is queried after %s",
    async (behaviour) => {
      const second = await startDns({ name: "a.test", type: "A", data: "192.0.2.77" });
      dns.behave(behaviour);
      // The second has as much time as the first, which may be silent.
      const resolver = resolverOver({ servers: [dns, second], tryTimeoutMs: 1000 });
      const found = await resolver.resolve("a.test", "A");
      expect(found).toMatchObject({ status: "ok", records: [{ data: "192.0.2.77" }] });
      second.stop();
    },
  );

  test("every server is queried once for each try, and no more", async () => {
    dns.behave("servfail");
    await resolverOver({ tries: 3 }).resolve("a.test", "A");
    expect(dns.count("a.test")).toBe(3);
  });

  test("a query leaves no socket and no timer behind, whatever the answer and its transport", async () => {
    const clock = manualClock();
    const resolver = resolverOver({}, clock);
    const opened = () => readdirSync("/proc/self/fd").length;
    const before = opened();
    const QUESTIONS = 20;
    for (const behaviour of ["normal", "servfail", "truncate_udp"] as const) {
      if (behaviour !== "normal") dns.behave(behaviour);
      for (let n = 0; n < QUESTIONS; n++) await resolver.resolve(`${behaviour}${n}.test`, "A");
    }
    expect(clock.pending()).toBe(0);
    await until(() => opened() < before + QUESTIONS / 2);
  });

  test("a server that fails at EDNS is queried without it", async () => {
    dns.behave("formerr_on_edns");
    expect(await resolverOver().resolve("a.test", "A")).toMatchObject({ status: "ok" });
    expect(dns.queries.items.map((query) => query.edns)).toEqual([true, false]);
  });

  test("a truncated answer is repeated by TCP", async () => {
    dns.behave("truncate_udp");
    const strings = Array.from({ length: 40 }, () => "y".repeat(250));
    dns.add({ name: "big.test", type: "TXT", data: strings });
    const found = await resolveTxt(resolverOver(), "big.test");
    expect(found).toMatchObject({ status: "ok", records: [strings.join("")] });
    expect(dns.queries.items.map((query) => query.transport)).toEqual(["udp", "tcp"]);
  });

  test.each([0, 1, 5, 20])("an answer cut %i octets before its end is repeated by TCP", async (octets) => {
    const forge: Forger = (answer) => {
      const whole = encode({ ...answer, flags: (answer.flags ?? 0) | TRUNCATED_RESPONSE });
      return [whole.subarray(0, whole.length - octets)];
    };
    dns.forge(forge);
    expect(await resolverOver().resolve("a.test", "MX")).toMatchObject({ status: "ok" });
    expect(dns.queries.items.map((query) => query.transport)).toEqual(["udp", "tcp"]);
  });
});

describe("forged answers", () => {
  const evil = (answer: object, change: object): Buffer =>
    encode({ ...answer, answers: [{ name: "a.test", type: "A", ttl: 9, data: "6.6.6.6" }], ...change });
  const rows: [string, Forger][] = [
    ["a wrong id", (answer) => [evil(answer, { id: (answer.id ?? 0) ^ 1 }), encode(answer)]],
    [
      "another name in the question",
      (answer) => [evil(answer, { questions: [{ name: "b.test", type: "A" }] }), encode(answer)],
    ],
    [
      "another type in the question",
      (answer) => [evil(answer, { questions: [{ name: "a.test", type: "TXT" }] }), encode(answer)],
    ],
    [
      "another class in the question",
      (answer) => [evil(answer, { questions: [{ name: "a.test", type: "A", class: "CH" }] }), encode(answer)],
    ],
    [
      "two questions",
      (answer) => [
        evil(answer, { questions: [answer.questions?.[0], { name: "b.test", type: "A" }] }),
        encode(answer),
      ],
    ],
    ["no question", (answer) => [evil(answer, { questions: [] }), encode(answer)]],
    ["a query in place of an answer", (answer) => [evil(answer, { type: "query" }), encode(answer)]],
    [
      "noise",
      (answer) => [
        Buffer.alloc(0),
        Buffer.from([1]),
        Buffer.alloc(11),
        Buffer.alloc(600, 0xff),
        encode(answer),
      ],
    ],
    ["a packet cut short", (answer) => [encode(answer).subarray(0, -3), encode(answer)]],
    [
      "a name that points at itself",
      (answer) => {
        const packet = encode(answer);
        packet.writeUInt16BE(0xc00c, 12);
        return [packet, encode(answer)];
      },
    ],
  ];
  test.each(rows)("%s is ignored, and the true answer used", async (_, forger) => {
    dns.forge(forger);
    expect(await resolverOver().resolve("a.test", "A")).toMatchObject({ records: [{ data: "192.0.2.1" }] });
    expect(dns.count("a.test")).toBe(1);
  });

  describe("the spelling of a question", () => {
    const LONG = "abcdefghijklmnopqrstuvwxyz.test";
    const asked = () => dns.queries.items.map(({ transport, spelling }) => ({ transport, spelling }));
    const isMixed = (spelling: string) => /[a-z]/.test(spelling) && /[A-Z]/.test(spelling);
    beforeEach(() => dns.add({ name: LONG, type: "A", data: "192.0.2.3" }));

    test("the spelling of a question is another one each time, and an answer that keeps it counts", async () => {
      const resolver = resolverOver();
      for (let time = 0; time < 2; time++)
        expect(await resolver.resolve(LONG, "A", { fresh: true })).toMatchObject({ status: "ok" });
      const spellings = asked().map(({ spelling }) => spelling);
      expect(spellings.map((spelling) => spelling.toLowerCase())).toEqual([LONG, LONG]);
      expect(spellings.every(isMixed)).toBe(true);
      expect(new Set(spellings).size).toBe(2);
    });

    test("the spelling of a question that an answer lacks moves the query to TCP: the forgery does not count", async () => {
      dns.forge((answer) => [evil(answer, { questions: [{ name: LONG, type: "A" }] }), encode(answer)]);
      const resolver = resolverOver();
      expect(await resolver.resolve(LONG, "A")).toMatchObject({ records: [{ data: "192.0.2.3" }] });
      dns.forge(null);
      await resolver.resolve(LONG, "A", { fresh: true });
      expect(asked().map(({ transport }) => transport)).toEqual(["udp", "tcp", "udp"]);
      // The server is still asked with one.
      expect(isMixed(asked().at(-1)?.spelling ?? "")).toBe(true);
    });

    test.each([
      ["by TCP at first", "fold", ["udp", "tcp", "udp"]],
      ["with the plain name, if it takes no TCP", "fold_no_tcp", ["udp", "tcp", "udp", "udp"]],
    ] as const)(
      "that a server does not keep: it is asked %s, and plainly from then on",
      async (_, behaviour, ways) => {
        dns.behave(behaviour);
        const resolver = resolverOver({ tryTimeoutMs: behaviour === "fold" ? PATIENT_MS : DEAF_MS });
        for (let time = 0; time < 2; time++)
          expect(await resolver.resolve(LONG, "A", { fresh: true })).toMatchObject({ status: "ok" });
        expect(asked().map(({ transport }) => transport)).toEqual([...ways]);
        expect(asked().at(-1)?.spelling).toBe(LONG);
      },
    );
  });

  test("a flood of forgeries moves the query to TCP", async () => {
    dns.forge((answer) =>
      Array.from({ length: 16 }, (_, at) => evil(answer, { id: (answer.id ?? 0) ^ (at + 1) })),
    );
    const found = await resolverOver().resolve("a.test", "A");
    expect(found).toMatchObject({ records: [{ data: "192.0.2.1" }] });
    expect(dns.queries.items.map((query) => query.transport)).toEqual(["udp", "tcp"]);
  });

  test("a packet from another source never reaches the query", async () => {
    const ports: number[] = [];
    const server = await Bun.udpSocket({
      hostname: "127.0.0.1",
      socket: {
        data(socket, packet, port, address) {
          ports.push(port);
          const question: Question = { name: "a.test", type: "A" };
          const answer: Packet = { type: "response", id: packet.readUInt16BE(0), questions: [question] };
          spoofer.send(evil(answer, {}), port, address);
          const records: Answer[] = [{ name: "a.test", type: "A", ttl: 9, data: "192.0.2.1" }];
          socket.send(encode({ ...answer, answers: records }), port, address);
        },
      },
    });
    const spoofer = await Bun.udpSocket({ hostname: "127.0.0.1", socket: { error: () => undefined } });
    const resolver = resolverOver({ servers: [{ ip: "127.0.0.1", port: server.port }] });
    for (let turn = 0; turn < 8; turn++)
      expect(await resolver.resolve("a.test", "A", { fresh: true })).toMatchObject({
        records: [{ data: "192.0.2.1" }],
      });
    expect(new Set(ports).size).toBeGreaterThan(4);
    server.close();
    spoofer.close();
  });

  test("records of names that were not queried are ignored", async () => {
    dns.forge((answer) => [
      encode({ ...answer, answers: [{ name: "b.test", type: "A", ttl: 9, data: "6.6.6.6" }] }),
    ]);
    expect(await resolverOver().resolve("a.test", "A")).toEqual({ status: "nodata" });
  });
});

test("any damage to an answer gives a valid answer or none, and never throws", () => {
  const question = { name: "a.test", type: "A" } as const;
  const answers: Answer[] = [
    { name: "a.test", type: "A", ttl: 9, data: "192.0.2.1" },
    { name: "a.test", type: "TXT", ttl: 9, data: ["x".repeat(40)] },
    { name: "a.test", type: "MX", ttl: 9, data: { preference: 1, exchange: "b.test" } },
  ];
  const sound = encode({ type: "response", id: 7, questions: [question], answers });
  // A generator with a fixed seed, so that failures repeat (Numerical Recipes' constants).
  let seed = 1;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed % below;
  };
  for (let turn = 0; turn < 20_000; turn++) {
    const packet = Buffer.from(sound.subarray(0, sound.length - (random(4) === 0 ? random(60) : 0)));
    for (let flips = random(4); flips >= 0; flips--) packet[random(packet.length)] = random(256);
    const answer = decodeAnswer(packet, question, 7);
    for (const record of answer?.answers ?? []) if (record.type === "A") expect(isIP(record.data)).toBe(4);
  }
});

describe("the cache", () => {
  test("an answer is cached for its time to live", async () => {
    const clock = manualClock();
    const resolver = resolverOver({}, clock);
    for (const [seconds, asked] of [
      [0, 1],
      [599, 1],
      [1, 2],
    ] as const) {
      clock.advance(seconds * 1000);
      await resolver.resolve("long.test", "A");
      expect(dns.count("long.test")).toBe(asked);
    }
  });

  test.each(["none.test", "v6only.test"])(
    "a negative answer for %s is cached as long as its SOA says",
    async (name) => {
      const clock = manualClock();
      const resolver = resolverOver({}, clock);
      for (const [seconds, asked] of [
        [0, 1],
        [59, 1],
        [1, 2],
      ] as const) {
        clock.advance(seconds * 1000);
        await resolver.resolve(name, "A");
        expect(dns.count(name)).toBe(asked);
      }
    },
  );

  test("a failure is not cached", async () => {
    const resolver = resolverOver();
    dns.behave("servfail");
    await resolver.resolve("a.test", "A");
    dns.behave("answer");
    expect(await resolver.resolve("a.test", "A")).toMatchObject({ status: "ok" });
  });

  test("a fresh lookup queries again and renews the cache", async () => {
    const resolver = resolverOver();
    await resolver.resolve("a.test", "A");
    dns.remove("a.test");
    expect(await resolver.resolve("a.test", "A")).toMatchObject({ status: "ok" });
    expect(await resolver.resolve("a.test", "A", { fresh: true })).toEqual({ status: "nxdomain" });
    expect(await resolver.resolve("a.test", "A")).toEqual({ status: "nxdomain" });
  });

  test("one answer over the limit evicts the one unused longest", async () => {
    const resolver = resolverOver({ maxCacheEntries: 2 });
    for (const name of ["a.test", "long.test", "a.test", "none.test", "a.test", "long.test"])
      await resolver.resolve(name, "A");
    expect([dns.count("a.test"), dns.count("long.test")]).toEqual([1, 2]);
  });

  test("callers with the same question at the same time share one query", async () => {
    dns.behave("hold");
    const resolver = resolverOver();
    const asked = Array.from({ length: 20 }, () => resolver.resolve("a.test", "A"));
    await dns.queries.reached(1);
    dns.release();
    for (const found of await Promise.all(asked)) expect(found.status).toBe("ok");
    expect(dns.count()).toBe(1);
  });
});

describe("in the manner of node:dns", () => {
  const rows: [name: string, type: string, expected: unknown][] = [
    ["a.test", "A", ["192.0.2.1"]],
    ["a.test", "TXT", [["v=DKIM1; p=AAAABBBB"], ["second"]]],
    ["null.test", "MX", [{ exchange: "", priority: 0 }]],
    ["www.test", "CNAME", ["alias.test"]],
  ];
  test.each(rows)("%s %s", async (name, type, expected) => {
    expect(await nodeStyleResolver(resolverOver())(name, type)).toEqual(expected as object[]);
  });

  test.each([
    ["none.test", "answer", "ENOTFOUND"],
    ["null.test", "answer", "ENODATA"],
    ["a.test", "servfail", "ESERVFAIL"],
    ["a.test", "refused", "EREFUSED"],
    ["a.test", "silent", "ETIMEOUT"],
  ] as const)("%s while the server does %s throws %s", async (name, behaviour, code) => {
    dns.behave(behaviour);
    const resolve = nodeStyleResolver(resolverOver(tryTimeoutOf(behaviour)));
    await expect(resolve(name, "A")).rejects.toMatchObject({ code, hostname: name });
  });

  test("an unsupported type is a programming error", async () => {
    await expect(nodeStyleResolver(resolverOver())("a.test", "AXFR")).rejects.toMatchObject({
      code: "EBADQUERY",
    });
  });
});
