import { expect, test } from "bun:test";
import { clientAddress, isInNetworks, isNetwork, networkOf } from "../../../src/core/networks.ts";

test.each([
  ["192.0.2.1", true],
  ["192.0.2.0/24", true],
  ["2001:db8::/32", true],
  ["::1", true],
  ["192.0.2.0/33", false],
  ["192.0.2", false],
  ["", false],
  ["proxy.example", false],
  ["192.0.2.0/", false],
])("%j is a network: %p", (text, is) => {
  expect(isNetwork(text)).toBe(is);
});

test.each([
  ["192.0.2.7", ["192.0.2.0/24"], true],
  ["192.0.3.7", ["192.0.2.0/24"], false],
  ["::ffff:192.0.2.7", ["192.0.2.7"], true],
  ["2001:db8:1::1", ["10.0.0.0/8", "2001:db8::/32"], true],
  ["2001:db9::1", ["2001:db8::/32"], false],
  ["192.0.2.8", ["192.0.2.7"], false],
  ["2001:db8::1", ["2001:db8::1"], true],
  ["2001:db8::2", ["2001:db8::1"], false],
  ["192.0.2.7", [], false],
  ["no address", ["0.0.0.0/0"], false],
])("%s within %j: %p", (ip, networks, is) => {
  expect(isInNetworks(ip, networks)).toBe(is);
});

const PROXIES = ["10.0.0.0/8"];
test.each<[name: string, peer: string, header: string | null, client: string]>([
  ["no proxy, no header", "192.0.2.1", null, "192.0.2.1"],
  ["no proxy: the header is the client's own", "192.0.2.1", "203.0.113.9", "192.0.2.1"],
  ["a proxy without a header", "10.0.0.1", null, "10.0.0.1"],
  ["a proxy", "10.0.0.1", "203.0.113.9", "203.0.113.9"],
  ["two proxies", "10.0.0.1", "203.0.113.9, 10.0.0.2", "203.0.113.9"],
  [
    "an address that the client wrote itself comes first",
    "10.0.0.1",
    "127.0.0.1, 203.0.113.9",
    "203.0.113.9",
  ],
  ["a proxy that adds a port", "10.0.0.1", "203.0.113.9:50123", "203.0.113.9"],
  ["a proxy that adds a port to IPv6", "10.0.0.1", "[2001:db8::9]:50123, 10.0.0.2:80", "2001:db8::9"],
  ["an address in brackets", "10.0.0.1", "[2001:db8::9]", "2001:db8::9"],
  ["IPv6 without brackets, which has no port", "10.0.0.1", "2001:db8::9:443", "2001:db8::9:443"],
  ["a colon without a port", "10.0.0.1", "203.0.113.9:x", "10.0.0.1"],
  ["an entry that is no address", "10.0.0.1", "unknown", "10.0.0.1"],
  ["an entry with markup", "10.0.0.1", "<b>, 203.0.113.9", "203.0.113.9"],
  ["an IPv4 client of an IPv6 proxy", "10.0.0.1", "::ffff:203.0.113.9", "203.0.113.9"],
])("the client address from %s", (_name, peer, header, client) => {
  expect(clientAddress(peer, header, PROXIES)).toBe(client);
});

test("an IPv6 /64 counts as one address, IPv4 addresses one by one", () => {
  expect(networkOf("2001:db8:1:2::1")).toBe(networkOf("2001:db8:1:2:ffff::9"));
  expect(networkOf("2001:db8:1:2::1")).not.toBe(networkOf("2001:db8:1:3::1"));
  expect(networkOf("192.0.2.1")).not.toBe(networkOf("192.0.2.2"));
  // The address of a socket that is already closed.
  expect(networkOf("")).toBe("");
  expect(networkOf("::ffff:192.0.2.1")).toBe("192.0.2.1");
});
