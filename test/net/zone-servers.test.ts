import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { createResolver } from "../../src/net/dns/resolver.ts";
import { findZoneServers, MAX_ZONE_SERVERS } from "../../src/net/dns/zone-servers.ts";
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

function find(name: string) {
  const resolver = createResolver({ clock: systemClock }, { servers: [cache], tries: 1 });
  const mayReach = (ip: string) => ip !== "10.0.0.7";
  return findZoneServers({ clock: systemClock, resolver, mayReach, port: authority.port }, name);
}

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
