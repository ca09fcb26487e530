import { describe, expect, test } from "bun:test";
import { candidates, MAX_ADDRESSES_TRIED } from "../../../../src/smtp/client/host-order.ts";
import { parseSmarthost } from "../../../../src/smtp/client/smarthost.ts";

describe("smarthost URLs", () => {
  const auth = (insecure: boolean) => ({ user: "u@x", pass: "p:/?", insecure });
  test.each([
    ["smtp://relay.test", { host: "relay.test", port: 25, tls: "opportunistic", implicitTls: false }],
    ["smtp://relay.test:587", { host: "relay.test", port: 587, tls: "opportunistic", implicitTls: false }],
    ["smtps://relay.test", { host: "relay.test", port: 465, tls: "opportunistic", implicitTls: true }],
    ["smtp://[2001:db8::1]:26", { host: "2001:db8::1", port: 26, tls: "opportunistic", implicitTls: false }],
    [
      "smtp://u%40x:p%3A%2F%3F@relay.test:587",
      { host: "relay.test", port: 587, tls: "verified", implicitTls: false, auth: auth(false) },
    ],
    [
      "smtps://u%40x:p%3A%2F%3F@relay.test",
      { host: "relay.test", port: 465, tls: "verified", implicitTls: true, auth: auth(false) },
    ],
    [
      "smtp://u%40x:p%3A%2F%3F@relay.test?insecure=1",
      { host: "relay.test", port: 25, tls: "opportunistic", implicitTls: false, auth: auth(true) },
    ],
  ] as const)("%s", (text, expected) => {
    expect(parseSmarthost(text)).toEqual(expected);
  });

  test.each(["", "relay.test:25", "http://relay.test", "smtp://", "smtp://u:%ff@relay.test"])(
    "%j is refused without repeating it",
    (text) => {
      let message = "";
      try {
        parseSmarthost(text);
      } catch (error) {
        message = String(error);
      }
      expect(message).toContain("smarthost");
      expect(message).not.toContain("%ff");
    },
  );
});

test("addresses are tried in the order of their hosts, those that failed recently after all others", () => {
  const hosts = [
    { name: "a.test", addresses: ["192.0.2.1", "192.0.2.2"] },
    { name: "b.test", addresses: ["192.0.2.3"] },
  ];
  const destination = { key: "k", hosts, port: 25, tls: "never", ehloName: "x" } as const;
  const shunned = new Map([
    ["a.test 192.0.2.1:25", 1000],
    ["a.test 192.0.2.2:26", 9000],
    ["b.test 192.0.2.3:25", 500],
  ]);
  const order = (now: number): string[] => candidates(destination, shunned, now).map(({ ip }) => ip);
  expect(order(400)).toEqual(["192.0.2.2", "192.0.2.1", "192.0.2.3"]);
  expect(order(999)).toEqual(["192.0.2.2", "192.0.2.3", "192.0.2.1"]);
  expect(order(1000)).toEqual(["192.0.2.1", "192.0.2.2", "192.0.2.3"]);
});

test("one address over the limit is not tried", () => {
  const addresses = Array.from({ length: MAX_ADDRESSES_TRIED + 1 }, (_, at) => `192.0.2.${at}`);
  const hosts = [{ name: "a.test", addresses }];
  const tried = candidates({ key: "k", hosts, port: 25, tls: "never", ehloName: "x" }, new Map(), 0);
  expect(tried.map(({ ip }) => ip)).toEqual(addresses.slice(0, -1));
});
