import { expect, test } from "bun:test";
import {
  createAdmission,
  createKnownPeers,
  isLoopback,
  plainAddress,
} from "../../../../src/smtp/listener/peer.ts";

test("an IPv4 peer of an IPv6 socket has its IPv4 address", () => {
  expect(plainAddress("::ffff:192.0.2.1")).toBe("192.0.2.1");
  expect(plainAddress("192.0.2.1")).toBe("192.0.2.1");
  expect(plainAddress("2001:db8:0:0::1")).toBe("2001:db8::1");
});

test("loopback is 127/8 and ::1, in any form", () => {
  for (const ip of ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]) expect(isLoopback(ip)).toBe(true);
  for (const ip of ["192.0.2.1", "10.0.0.1", "2001:db8::1", "::ffff:192.0.2.1", ""])
    expect(isLoopback(ip)).toBe(false);
});

test("one connection too many from an address is refused, but not from others or loopback", () => {
  const { enter, leave } = createAdmission({ maxConnections: 100, maxConnectionsPerIp: 2 });
  expect([enter("192.0.2.1"), enter("192.0.2.1"), enter("192.0.2.1"), enter("192.0.2.2")]).toEqual([
    true,
    true,
    false,
    true,
  ]);
  expect([enter("2001:db8::1"), enter("2001:db8::2"), enter("2001:db8::3")]).toEqual([true, true, false]);
  expect([enter("127.0.0.1"), enter("127.0.0.1"), enter("127.0.0.1")]).toEqual([true, true, true]);
  leave("192.0.2.1");
  expect([enter("192.0.2.1"), enter("192.0.2.1")]).toEqual([true, false]);
});

test("one connection too many in total is refused, even from loopback", () => {
  const { enter, leave } = createAdmission({ maxConnections: 2, maxConnectionsPerIp: 2 });
  expect([enter("192.0.2.1"), enter("127.0.0.1"), enter("127.0.0.1"), enter("192.0.2.3")]).toEqual([
    true,
    true,
    false,
    false,
  ]);
  leave("192.0.2.1");
  expect([enter("127.0.0.1"), enter("192.0.2.3")]).toEqual([true, false]);
});

test("if too many peers are remembered, the one not seen for longest is forgotten", () => {
  const known = createKnownPeers(2);
  for (const ip of ["192.0.2.1", "192.0.2.2", "192.0.2.1"]) known.add(ip);
  expect(["192.0.2.1", "192.0.2.2"].map(known.has)).toEqual([true, true]);
  known.add("192.0.2.3");
  expect(["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(known.has)).toEqual([true, false, true]);
});
