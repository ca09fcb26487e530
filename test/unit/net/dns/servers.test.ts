import { expect, test } from "bun:test";
import { join } from "node:path";
import { MAX_DNS_SERVERS } from "../../../../src/core/networks.ts";
import { dnsServers, parseDnsServer, parseResolvConf } from "../../../../src/net/dns/servers.ts";
import { toReverseName } from "../../../../src/net/dns/lookups.ts";

test.each([
  ["192.0.2.1", { ip: "192.0.2.1", port: 53 }],
  ["192.0.2.1:5353", { ip: "192.0.2.1", port: 5353 }],
  ["2001:db8::1", { ip: "2001:db8::1", port: 53 }],
  ["[2001:db8::1]", { ip: "2001:db8::1", port: 53 }],
  ["[2001:db8::1]:5353", { ip: "2001:db8::1", port: 5353 }],
  ["192.0.2.1:0", null],
  ["192.0.2.1:65536", null],
  ["192.0.2.256", null],
  ["[192.0.2.1]:53", null],
  ["dns.test", null],
  ["", null],
])("%p as a DNS server", (text, expected) => {
  expect(parseDnsServer(text)).toEqual(expected);
});

test("resolv.conf gives its nameservers, without scopes; everything else is ignored", () => {
  const text =
    "# c\nsearch x\nnameserver 192.0.2.1\n nameserver\t2001:db8::1%eth0 # c\nnameserver name\noptions y\n";
  expect(parseResolvConf(text)).toEqual([
    { ip: "192.0.2.1", port: 53 },
    { ip: "2001:db8::1", port: 53 },
  ]);
});

test("configured servers replace the system's, and a text without any is refused", () => {
  expect(dnsServers(["192.0.2.1:54"], "/nonexistent")).toEqual([{ ip: "192.0.2.1", port: 54 }]);
  expect(() => dnsServers(["example.com"])).toThrow("is not a DNS server");
  expect(dnsServers([], join(import.meta.dir, "nonexistent"))).toEqual([{ ip: "127.0.0.1", port: 53 }]);
});

test("one server over the limit is not used", () => {
  const texts = Array.from({ length: MAX_DNS_SERVERS + 1 }, (_, at) => `192.0.2.${at + 1}`);
  expect(dnsServers(texts)).toHaveLength(MAX_DNS_SERVERS);
});

test.each([
  ["192.0.2.1", "1.2.0.192.in-addr.arpa"],
  ["2001:db8::1", "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"],
  ["fe80::1%eth0", null],
  ["127.1", null],
])("reverse name of %s", (ip, expected) => {
  expect(toReverseName(ip)).toBe(expected);
});
