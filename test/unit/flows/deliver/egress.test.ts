import { describe, expect, test } from "bun:test";
import { egressesOf, reachedFrom } from "../../../../src/flows/deliver/egress.ts";

const all = ["203.0.113.1", "203.0.113.2", "203.0.113.3"].map((ip) => ({ ip, pool: null, name: null }));
const bulk = { ip: "203.0.113.9", pool: "bulk", name: null };

describe("the addresses of a pool", () => {
  test("the addresses of a pool are in the same order for a domain, whichever order the setting has", () => {
    const order = egressesOf(all, null, "a.test");
    expect(egressesOf([...all].reverse(), null, "a.test")).toEqual(order);
    expect(order).toHaveLength(all.length);
  });
  test("the addresses of a pool are each first for about as many domains", () => {
    const firsts = new Map<string, number>();
    for (let nth = 0; nth < 3000; nth++) {
      const [first] = egressesOf(all, null, `d${nth}.test`);
      firsts.set(first?.ip ?? "", (firsts.get(first?.ip ?? "") ?? 0) + 1);
    }
    for (const { ip } of all) expect(firsts.get(ip)).toBeWithin(900, 1100);
  });
  test.each([
    ["bulk", [bulk.ip]],
    ["none such", all.map(({ ip }) => ip)],
  ])("%s are its own, or the usual ones if it has none", (pool, expected) => {
    const found = egressesOf([...all, bulk], pool, "a.test").map(({ ip }) => ip);
    expect(found.sort()).toEqual(expected);
  });
});

test("a host without an address that can be reached is left out", () => {
  const hosts = [
    { name: "a", preference: 1, addresses: ["192.0.2.1", "2001:db8::1"] },
    { name: "b", preference: 2, addresses: ["2001:db8::2"] },
  ];
  expect(reachedFrom(hosts, (ip) => !ip.includes(":"))).toEqual([
    { name: "a", preference: 1, addresses: ["192.0.2.1"] },
  ]);
});
