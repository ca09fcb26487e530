import { afterAll, beforeAll, expect, test } from "bun:test";
import { resolveAddresses } from "../../src/net/dns/lookups.ts";
import { findRoute, MAX_ADDRESSES_PER_HOST } from "../../src/net/mx.ts";
import { type DnsRecord, startDns, type TestDns } from "../support/dns.ts";
import { testResolver } from "../support/sts-host.ts";

const a = (name: string, count: number): DnsRecord[] =>
  Array.from({ length: count }, (_, at) => ({ name, type: "A", data: `1.1.1.${at + 1}` }));
const aaaa = (name: string, count: number): DnsRecord[] =>
  Array.from({ length: count }, (_, at) => ({ name, type: "AAAA", data: `2606:4700::${at + 1}` }));
let dns: TestDns;

beforeAll(async () => {
  dns = await startDns(
    ...a("more4.test", 3),
    ...aaaa("more4.test", 1),
    ...a("more6.test", 1),
    ...aaaa("more6.test", 3),
    ...a("only4.test", 2),
    ...aaaa("only6.test", 2),
    ...a("many.test", 20),
    ...aaaa("many.test", 20),
  );
});
afterAll(() => dns.stop());

test.each([
  ["more4.test", ["1.1.1.1", "2606:4700::1", "1.1.1.2", "1.1.1.3"]],
  ["more6.test", ["1.1.1.1", "2606:4700::1", "2606:4700::2", "2606:4700::3"]],
  ["only4.test", ["1.1.1.1", "1.1.1.2"]],
  ["only6.test", ["2606:4700::1", "2606:4700::2"]],
])("addresses of %s alternate between families, IPv4 first", async (host, addresses) => {
  const found = await resolveAddresses(testResolver(dns), host);
  expect(found).toMatchObject({ status: "ok", records: addresses });
});

test("if a host has more addresses than are tried, both families are tried", async () => {
  const deps = { resolver: testResolver(dns), random: () => 0.5, allowPrivate: false };
  const route = await findRoute(deps, "many.test");
  const addresses = route.kind === "hosts" ? (route.hosts[0]?.addresses ?? []) : [];
  expect(addresses).toHaveLength(MAX_ADDRESSES_PER_HOST);
  expect(addresses.filter((ip) => ip.includes(":"))).toHaveLength(MAX_ADDRESSES_PER_HOST / 2);
});
