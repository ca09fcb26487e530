import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { findRoute, inOrder, MAX_MX_HOSTS, type Route } from "../../src/net/mx.ts";
import { createResolver, type Resolver } from "../../src/net/dns/resolver.ts";
import { startDns, type TestDns } from "../support/dns.ts";

let dns: TestDns;
const mx = (name: string, preference: number, exchange: string) =>
  ({ name, type: "MX", data: { preference, exchange } }) as const;
const a = (name: string, data: string) => ({ name, type: "A", data }) as const;

beforeAll(async () => {
  dns = await startDns(
    mx("two.test", 20, "second.test"),
    mx("two.test", 10, "first.test"),
    a("first.test", "1.1.1.1"),
    { name: "first.test", type: "AAAA", data: "2606:4700::1111" },
    a("second.test", "1.0.0.1"),
    a("implicit.test", "1.1.1.1"),
    { name: "implicit6.test", type: "AAAA", data: "2606:4700::1111" },
    { name: "alias.test", type: "CNAME", data: "two.test" },
    mx("nullmx.test", 0, "."),
    mx("mixed.test", 0, "."),
    mx("mixed.test", 5, "first.test"),
    { name: "empty.test", type: "TXT", data: "nothing here" },
    mx("dead.test", 10, "gone.test"),
    mx("strange.test", 10, "a\r\nb\0<ü>.test"),
    mx("private.test", 10, "inside.test"),
    a("inside.test", "10.0.0.7"),
    mx("half.test", 10, "both.test"),
    a("both.test", "10.0.0.7"),
    a("both.test", "1.1.1.1"),
    mx("partly.test", 10, "broken.test"),
    mx("partly.test", 20, "second.test"),
    mx("allbroken.test", 10, "broken.test"),
    a("addressbroken.test", "1.1.1.1"),
    ...Array.from({ length: MAX_MX_HOSTS + 1 }, (_, at) => mx("many.test", at, "first.test")),
  );
  dns.behave("servfail", "broken.test");
  dns.behave("servfail", "mxbroken.test");
});
afterAll(() => dns.stop());

function route(domain: string, allowPrivate = false): Promise<Route> {
  const resolver = createResolver({ clock: systemClock }, { servers: [dns], tries: 1, tryTimeoutMs: 2000 });
  return findRoute({ resolver, random: () => 0.5, allowPrivate }, domain);
}

/** Domain, kind of route, and the hosts with their addresses in order. */
const ROWS: [domain: string, kind: Route["kind"], hosts: string[]][] = [
  ["two.test", "hosts", ["first.test 1.1.1.1,2606:4700::1111", "second.test 1.0.0.1"]],
  ["alias.test", "hosts", ["first.test 1.1.1.1,2606:4700::1111", "second.test 1.0.0.1"]],
  ["implicit.test", "hosts", ["implicit.test 1.1.1.1"]],
  ["implicit6.test", "hosts", ["implicit6.test 2606:4700::1111"]],
  ["nullmx.test", "null_mx", []],
  ["mixed.test", "hosts", ["first.test 1.1.1.1,2606:4700::1111"]],
  ["empty.test", "no_such_domain", []],
  ["none.test", "no_such_domain", []],
  ["dead.test", "deferred", []],
  ["private.test", "deferred", []],
  ["inside.test", "deferred", []],
  ["half.test", "hosts", ["both.test 1.1.1.1"]],
  ["partly.test", "hosts", ["second.test 1.0.0.1"]],
  ["allbroken.test", "deferred", []],
  ["mxbroken.test", "deferred", []],
];

describe("the route to a domain", () => {
  test.each(ROWS)("%s: %s", async (domain, kind, hosts) => {
    const found = await route(domain);
    expect(found.kind).toBe(kind);
    if (found.kind === "hosts")
      expect(found.hosts.map(({ name, addresses }) => `${name} ${addresses.join(",")}`)).toEqual(hosts);
  });

  test("private addresses are tried if that is allowed", async () => {
    expect(await route("private.test", true)).toMatchObject({ hosts: [{ addresses: ["10.0.0.7"] }] });
  });

  test("a deferral says which host failed and why", async () => {
    expect(await route("allbroken.test")).toMatchObject({
      reason: expect.stringContaining("broken.test: servfail"),
    });
    expect(await route("private.test")).toMatchObject({
      reason: expect.stringContaining("no public address"),
    });
  });

  test("a deferral shows a host's name on one line, whatever octets it has", async () => {
    expect(await route("strange.test")).toMatchObject({
      reason: "no mail host of strange.test can be reached (a??b?<?>.test: no address)",
    });
  });

  // RFC 5321 §5.1. Otherwise mail would bounce for a brief failure of a name server.
  test.each([
    ["A and AAAA records", ["A", "AAAA"], "deferred"],
    ["A records", ["A"], "deferred"],
    ["AAAA records", ["AAAA"], "deferred"],
    ["neither: it has none", [], "no_such_domain"],
  ] as const)("without MX records, if a lookup fails of its %s", async (_, failing, kind) => {
    const resolver: Resolver = {
      resolve: async (_name, type) =>
        failing.some((one) => one === type)
          ? { status: "failure", reason: "servfail" }
          : { status: "nodata" },
    };
    expect((await findRoute({ resolver, random: () => 0.5, allowPrivate: false }, "bare.test")).kind).toBe(
      kind,
    );
  });

  test("one host over the limit is left out", async () => {
    const found = await route("many.test");
    expect(found.kind === "hosts" && found.hosts.length).toBe(MAX_MX_HOSTS);
  });
});

test("hosts are tried by preference, and those of equal preference in random order", () => {
  const records = ["a", "b", "c", "d"].map((exchange) => ({
    preference: exchange === "d" ? 5 : 10,
    exchange,
  }));
  const lots = [0.9, 0.1, 0.5, 0.99];
  expect(inOrder(records, () => lots.shift() ?? 0).map(({ exchange }) => exchange)).toEqual([
    "d",
    "b",
    "c",
    "a",
  ]);
});
