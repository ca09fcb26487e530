import { expect, test } from "bun:test";
import type { ConnectResult } from "../../src/smtp/client/connection.ts";
import type { Destination } from "../../src/smtp/client/delivery.ts";
import { connectInOrder } from "../../src/smtp/client/host-order.ts";
import { manualClock } from "../support/manual-clock.ts";

/** A primary host with four IPv4 and four IPv6 addresses, as big providers have, and a second host. */
const primary = Array.from({ length: 8 }, (_, at) => `192.0.2.${at + 1}`);
const destination: Destination = {
  key: "k",
  hosts: [
    { name: "mx1.test", addresses: primary },
    { name: "mx2.test", addresses: ["198.51.100.1"] },
  ],
  port: 25,
  tls: "opportunistic",
  ehloName: "us.test",
};
const CONNECT_MS = 30_000;
/** The default schedule, with the last delay repeated until the message is given up after 72 hours. */
const DELAYS_S = [60, 300, 900, 1800, 3600, 7200, 14400, ...Array<number>(11).fill(21600)];

test("the second host is tried within 72 hours if no address of the first one answers", async () => {
  const clock = manualClock();
  const shunned = new Map<string, number>();
  const hosts = new Set<string>();
  const connect = async (host: string): Promise<ConnectResult> => {
    hosts.add(host);
    clock.advance(CONNECT_MS);
    return { kind: "failed", result: { kind: "trouble", stage: "connect", reason: "connection timed out" } };
  };
  for (const delay of [0, ...DELAYS_S]) {
    clock.advance(delay * 1000);
    await connectInOrder(clock, shunned, destination, clock.now() + 720_000, connect);
  }
  expect([...hosts].sort()).toEqual(["mx1.test", "mx2.test"]);
});
