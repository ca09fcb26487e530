import { encode } from "dns-packet";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { createResolver } from "../../src/net/dns/resolver.ts";
import { findZoneServers, MAX_ZONE_SERVERS, resolveDelegation } from "../../src/net/dns/zone-servers.ts";
import { resolveTxt } from "../../src/net/dns/lookups.ts";
import { type DnsRecord, startDns, type TestDns } from "../support/dns.ts";

let cache: TestDns;
let authority: TestDns;
const ns = (name: string, data: string): DnsRecord => ({ name, type: "NS", data });

beforeAll(async () => {
  authority = await startDns({ name: "a.shop.test", type: "TXT", data: "new" });
  cache = await startDns(
    { name: "a.shop.test", type: "TXT", data: "old" },
    ns("shop.test", "ns1.host.test"),
    ns("shop.test", "ns2.host.test"),
    ns("shop.test", "gone.host.test"),
    { name: "ns1.host.test", type: "A", data: authority.ip },
    { name: "ns2.host.test", type: "A", data: "10.0.0.7" },
    ns("test", "ns1.host.test"),
    ...Array.from({ length: MAX_ZONE_SERVERS + 1 }, (_, at) => ns("many.test", `m${at}.host.test`)),
    ...Array.from({ length: MAX_ZONE_SERVERS + 1 }, (_, at): DnsRecord => {
      return { name: `m${at}.host.test`, type: "A", data: authority.ip };
    }),
  );
});
afterAll(() => {
  cache.stop();
  authority.stop();
});

function deps() {
  const resolver = createResolver({ clock: systemClock }, { servers: [cache], tries: 1 });
  const mayReach = (ip: string) => ip !== "10.0.0.7";
  return { clock: systemClock, resolver, mayReach, port: authority.port };
}
const find = (name: string) => findZoneServers(deps(), name);

test("the name servers of the zone above a name are asked directly, and none at a refused address", async () => {
  const servers = await find("a.shop.test");
  expect(servers.map(({ name }) => name)).toEqual(["ns1.host.test"]);
  const [server] = servers;
  const found = server === undefined ? null : await resolveTxt(server.resolver, "a.shop.test");
  expect(found).toMatchObject({ status: "ok", records: ["new"] });
});

test("no more servers are asked than the limit", async () => {
  expect(await find("many.test")).toHaveLength(MAX_ZONE_SERVERS);
});

test("the servers of a top-level domain are not asked", async () => {
  expect(await find("other.test")).toEqual([]);
});

describe("the delegation of a name", () => {
  beforeAll(() => {
    cache.add(
      ns("sub.shop.test", "claimed.test"),
      ns("top.test", "claimed.test"),
      ns("x.none", "resolver.test"),
    );
    authority.add(ns("sub.shop.test", "true.test"), ns("top.test", "true.test"));
    // The zone above answers by a referral.
    authority.forge((answer) => [encode({ ...answer, answers: [], authorities: answer.answers ?? [] })]);
  });
  afterAll(() => authority.forge(null));

  test.each([
    ["sub.shop.test", ["true.test"], "the servers of the zone above, not what a resolver says"],
    ["a.sub.shop.test", ["claimed.test"], "the resolver if the servers of the zone above do not answer"],
    ["top.test", ["true.test"], "the servers of a top-level domain"],
    ["x.none", ["resolver.test"], "the resolver if the zone above is not found"],
  ])("%s is %p, by %s", async (name, records) => {
    if (name === "a.sub.shop.test") {
      cache.add(ns(name, "claimed.test"));
      authority.behave("servfail", name);
    }
    expect(await resolveDelegation(deps(), name)).toMatchObject({ status: "ok", records });
  });

  test("the delegation of a name is none if the zone above has none, whatever a resolver says", async () => {
    cache.add(ns("gone.shop.test", "claimed.test"));
    expect((await resolveDelegation(deps(), "gone.shop.test")).status).toBe("nxdomain");
  });
});
