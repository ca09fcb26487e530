import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type DaneFinding, findDane, MAX_TLSA_RECORDS } from "../../src/net/dane.ts";
import { startDns, type TestDns } from "../support/dns.ts";
import { signZone, testResolver, tlsaRecord } from "../support/sts-host.ts";

const PORT = 25;
const SHA256 = Buffer.alloc(32, 1);
const SHA512 = Buffer.alloc(64, 2);
const WHOLE = Buffer.from("3082", "hex");
/** Names without signatures, whatever the zone says of other names. */
const UNSIGNED = new Set<string>();
/** Names whose alias is signed but not its target. */
const SIGNED_ALIASES = new Set<string>();
let dns: TestDns;

const tlsa = (host: string, ...data: [usage: number, selector: number, matching: number, octets: Buffer]) =>
  tlsaRecord(`_${PORT}._tcp.${host}`, ...data);
const mx = (name: string, exchange: string) =>
  ({ name, type: "MX", data: { preference: 10, exchange } }) as const;
const a = (name: string) => ({ name, type: "A", data: "127.0.0.1" }) as const;

/** A signed domain whose one MX host has these TLSA records. */
function domain(
  name: string,
  ...records: [usage: number, selector: number, matching: number, data: Buffer][]
) {
  const host = `mx.${name}`;
  dns.add(mx(name, host), a(host), ...records.map((record) => tlsa(host, ...record)));
}

beforeAll(async () => {
  dns = await startDns();
  signZone(dns, isSigned);
});
afterAll(() => dns.stop());

function isSigned(name: string, type: string): boolean {
  return !UNSIGNED.has(name) || (type === "CNAME" && SIGNED_ALIASES.has(name));
}

async function find(name: string, host = `mx.${name}`, port = PORT): Promise<DaneFinding> {
  const [finding] = await findDane(testResolver(dns), name, [host], port);
  if (finding === undefined) throw new Error("no finding");
  return finding;
}

/** TLSA records of a host, and those of them that are used. */
const ROWS: [name: string, records: Parameters<typeof domain>[1][], used: number[]][] = [
  ["ee.test", [[3, 1, 1, SHA256]], [0]],
  ["ee512.test", [[3, 1, 2, SHA512]], [0]],
  ["eecert.test", [[3, 0, 1, SHA256]], [0]],
  ["eewhole.test", [[3, 0, 0, WHOLE]], [0]],
  [
    "ta.test",
    [
      [2, 0, 1, SHA256],
      [2, 1, 2, SHA512],
    ],
    [0, 1],
  ],
  [
    "rollover.test",
    [
      [3, 1, 1, SHA256],
      [3, 1, 1, Buffer.alloc(32, 9)],
    ],
    [0, 1],
  ],
  // RFC 7671 §9: only the strongest digest of each kind.
  [
    "agility.test",
    [
      [3, 1, 1, SHA256],
      [3, 1, 2, SHA512],
      [3, 0, 1, SHA256],
    ],
    [1, 2],
  ],
  [
    "mixed.test",
    [
      [0, 0, 1, SHA256],
      [1, 1, 1, SHA256],
      [3, 1, 1, SHA256],
    ],
    [2],
  ],
  [
    "pkix.test",
    [
      [0, 0, 1, SHA256],
      [1, 1, 1, SHA256],
    ],
    [],
  ],
  [
    "strange.test",
    [
      [4, 1, 1, SHA256],
      [3, 2, 1, SHA256],
      [3, 1, 3, SHA256],
      [255, 255, 255, SHA256],
    ],
    [],
  ],
  [
    "short.test",
    [
      [3, 1, 1, SHA256.subarray(1)],
      [3, 1, 2, SHA256],
      [3, 1, 0, Buffer.alloc(0)],
    ],
    [],
  ],
];

describe("TLSA records", () => {
  test.each(ROWS)("of %s", async (name, records, used) => {
    domain(name, ...records);
    const finding = await find(name);
    const wanted = records.filter((_, at) => used.includes(at));
    if (used.length === 0) expect(finding).toEqual({ kind: "unusable" });
    else
      expect(finding).toMatchObject({
        kind: "demand",
        records: wanted.map(([usage, selector, matchingType, data]) => ({
          usage,
          selector,
          matchingType,
          data,
        })),
      });
  });

  test("one over the limit is ignored", async () => {
    const digest = (at: number): Buffer => Buffer.alloc(32, at);
    domain(
      "many.test",
      ...Array.from(
        { length: MAX_TLSA_RECORDS + 1 },
        (_, at) => [3, 1, 1, digest(at)] as [number, number, number, Buffer],
      ),
    );
    expect(await find("many.test")).toMatchObject({ records: { length: MAX_TLSA_RECORDS } });
  });

  test("are those of the port connected to", async () => {
    domain("port.test", [3, 1, 1, SHA256]);
    expect(await find("port.test", "mx.port.test", 2525)).toEqual({ kind: "none" });
  });

  test("name the host, and for a trust anchor all names it may have", async () => {
    domain("names.test", [3, 1, 1, SHA256]);
    domain("anchored.test", [2, 1, 1, SHA256]);
    expect(await find("names.test")).toMatchObject({ names: ["mx.names.test"] });
    expect(await find("anchored.test")).toMatchObject({ names: ["mx.anchored.test", "anchored.test"] });
  });
});

describe("DANE", () => {
  test.each(["MX", "A", "TLSA"])("does not apply if the %s is not signed", async (type) => {
    const name = `half-${type.toLowerCase()}.test`;
    domain(name, [3, 1, 1, SHA256]);
    UNSIGNED.add({ MX: name, A: `mx.${name}`, TLSA: `_${PORT}._tcp.mx.${name}` }[type] ?? "");
    expect(await find(name)).toEqual({ kind: "none" });
    // The servers of unsigned zones get no question that they may fail at.
    expect(dns.count(`_${PORT}._tcp.mx.${name}`)).toBe(type === "TLSA" ? 1 : 0);
  });

  test("does not apply if a signed zone has no TLSA", async () => {
    domain("plain.test");
    expect(await find("plain.test")).toEqual({ kind: "none" });
  });

  test("does not apply to a host that the signed MX does not name", async () => {
    domain("other.test", [3, 1, 1, SHA256]);
    domain("foreign.test", [3, 1, 1, SHA256]);
    expect(await find("other.test", "mx.foreign.test")).toEqual({ kind: "none" });
  });

  test("applies to a domain that is its own mail host", async () => {
    dns.add(a("implicit.test"), tlsa("implicit.test", 3, 1, 1, SHA256));
    expect(await find("implicit.test", "implicit.test")).toMatchObject({ kind: "demand" });
  });

  test("applies to a host that only has IPv6", async () => {
    dns.add(
      mx("six.test", "mx.six.test"),
      { name: "mx.six.test", type: "AAAA", data: "::1" },
      tlsa("mx.six.test", 3, 1, 1, SHA256),
    );
    expect(await find("six.test")).toMatchObject({ kind: "demand" });
  });

  test("TLSA records of an aliased host are searched at its target, then at its own name", async () => {
    for (const [name, owner] of [
      ["end.test", "real.end.test"],
      ["own.test", "mx.own.test"],
    ] as const) {
      dns.add(
        mx(name, `mx.${name}`),
        { name: `mx.${name}`, type: "CNAME", data: `real.${name}` },
        a(`real.${name}`),
        tlsa(owner, 2, 1, 1, SHA256),
      );
      expect(await find(name)).toMatchObject({
        kind: "demand",
        names: [...new Set([owner, `mx.${name}`, name])],
      });
    }
  });

  describe("of a signed host that is an alias into an unsigned zone", () => {
    /** Its addresses are not signed. */
    function aliased(name: string): string {
      const host = `mx.${name}`;
      UNSIGNED.add(host);
      dns.add(
        mx(name, host),
        { name: host, type: "CNAME", data: `real.${name}` },
        a(`real.${name}`),
        tlsa(host, 3, 1, 1, SHA256),
        tlsa(`real.${name}`, 3, 1, 1, SHA512.subarray(32)),
      );
      return host;
    }

    test("is that of the host's own name", async () => {
      SIGNED_ALIASES.add(aliased("into.test"));
      expect(await find("into.test")).toMatchObject({
        kind: "demand",
        records: [{ data: SHA256 }],
        names: ["mx.into.test"],
      });
      expect(dns.count(`_${PORT}._tcp.real.into.test`)).toBe(0);
    });

    test("is absent if the alias is not signed either", async () => {
      aliased("outside.test");
      expect(await find("outside.test")).toEqual({ kind: "none" });
      expect(dns.count(`_${PORT}._tcp.mx.outside.test`)).toBe(0);
    });

    test("makes the host unusable if that lookup fails", async () => {
      const host = aliased("hidden.test");
      const resolver = testResolver(dns);
      for (const type of ["A", "AAAA"] as const) await resolver.resolve(host, type);
      dns.behave("servfail", host);
      const found = await findDane(resolver, "hidden.test", [host], PORT);
      expect(found).toEqual([{ kind: "broken", reason: "alias lookup: servfail" }]);
    });
  });

  test.each([
    ["servfail", "TLSA lookup: servfail"],
    ["refused", "TLSA lookup: refused"],
  ] as const)("that ends in %s makes the host unusable", async (behaviour, reason) => {
    const name = `${behaviour}.test`;
    domain(name, [3, 1, 1, SHA256]);
    dns.behave(behaviour, `_${PORT}._tcp.mx.${name}`);
    expect(await find(name)).toEqual({ kind: "broken", reason });
  });

  test("makes hosts unusable if their MX or addresses cannot be looked up", async () => {
    domain("nomx.test");
    dns.behave("servfail", "nomx.test");
    expect(await find("nomx.test")).toEqual({ kind: "broken", reason: "MX lookup: servfail" });
    domain("noaddress.test");
    dns.behave("servfail", "mx.noaddress.test");
    expect(await find("noaddress.test")).toEqual({ kind: "broken", reason: "address lookup: servfail" });
  });

  test("a TLSA record that is cut off at its start is not an answer", async () => {
    domain("cut.test", [3, 1, 1, SHA256]);
    const name = `_${PORT}._tcp.mx.cut.test`;
    const resolver = testResolver(dns);
    // Two octets of data, although usage, selector and matching type take three.
    dns.forge((_, query) => {
      const question = query.subarray(12, query.indexOf(0, 12) + 5);
      const header = Buffer.from([query[0] ?? 0, query[1] ?? 0, 0x81, 0xa0, 0, 1, 0, 1, 0, 0, 0, 0]);
      const record = Buffer.from([0xc0, 12, 0, 52, 0, 1, 0, 0, 0, 60, 0, 2, 3, 1]);
      return Array.from({ length: 16 }, () => Buffer.concat([header, question, record]));
    });
    try {
      // Such packets are ignored. After enough of them the question is sent by TCP, which gives the true answer.
      expect(await resolver.resolve(name, "TLSA")).toMatchObject({
        status: "ok",
        records: [{ data: { usage: 3 } }],
      });
    } finally {
      signZone(dns, isSigned);
    }
  });
});
