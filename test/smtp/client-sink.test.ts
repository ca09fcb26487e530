import { afterEach, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { systemClock } from "../../src/clock.ts";
import { log } from "../../src/log.ts";
import type { DeliveryReport, Destination, OutboundMail } from "../../src/smtp/client/delivery.ts";
import { createPool } from "../../src/smtp/client/pool.ts";

const SINK = "/usr/sbin/smtp-sink";
const MAIL: OutboundMail = {
  mailFrom: "b+1@out.test",
  rcptTo: "to@in.test",
  raw: Buffer.from(`Subject: x\r\n\r\n${`.${"x".repeat(75)}\r\n`.repeat(64)}`),
};
const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** Postfix's own sink, an independent peer, on a port that was free a moment ago. */
async function sink(...switches: string[]): Promise<Destination> {
  for (let attempt = 0; attempt < 5; attempt++) {
    const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
    const { port } = probe;
    probe.stop(true);
    const user = process.getuid?.() === 0 ? ["-u", "root"] : [];
    const child = Bun.spawn([SINK, ...user, ...switches, `127.0.0.1:${port}`, "100"], { stderr: "ignore" });
    stops.push(() => child.kill());
    if (await answers(port, child))
      return {
        key: "sink",
        hosts: [{ name: "sink", addresses: ["127.0.0.1"] }],
        port,
        tls: "opportunistic",
        ehloName: "us.test",
      };
  }
  throw new Error("smtp-sink does not start");
}

async function answers(port: number, child: Bun.Subprocess): Promise<boolean> {
  while (child.exitCode === null) {
    const opened = await Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: { data: () => undefined },
    }).catch(() => null);
    opened?.terminate();
    if (opened !== null) return true;
    await Bun.sleep(1);
  }
  return false;
}

async function deliver(destination: Destination, count: number, connections = 3): Promise<DeliveryReport[]> {
  const pool = createPool(
    { clock: systemClock, log: log("smtp") },
    { maxConnectionsPerDestination: connections },
  );
  const reports = await Promise.all(Array.from({ length: count }, () => pool.deliver(destination, MAIL)));
  await pool.close(5000);
  return reports;
}

describe.skipIf(!existsSync(SINK))("against smtp-sink", () => {
  test.each([
    ["as it comes", []],
    ["without ESMTP", ["-e"]],
    ["without PIPELINING", ["-p"]],
    ["without 8BITMIME", ["-8"]],
  ] as [string, string[]][])("%s, a thousand messages are taken", async (_, switches) => {
    for (const { result } of await deliver(await sink(...switches), 1000))
      expect(result).toMatchObject({ kind: "reply", stage: "final", code: 250 });
  });

  test.each([
    ["connect", ["-r", "connect"], { kind: "reply", stage: "connect", code: 450 }],
    ["ehlo", ["-f", "ehlo,helo"], { kind: "reply", stage: "ehlo", code: 500 }],
    ["mail", ["-r", "mail"], { kind: "reply", stage: "mail", code: 450 }],
    ["mail", ["-f", "mail"], { kind: "reply", stage: "mail", code: 500 }],
    ["rcpt", ["-r", "rcpt"], { kind: "reply", stage: "rcpt", code: 450 }],
    ["rcpt", ["-f", "rcpt"], { kind: "reply", stage: "rcpt", code: 500 }],
    ["data", ["-f", "data"], { kind: "reply", stage: "data", code: 500 }],
    ["the message", ["-r", "."], { kind: "reply", stage: "final", code: 450 }],
    ["the message", ["-f", "."], { kind: "reply", stage: "final", code: 500 }],
    ["mail", ["-q", "mail"], { kind: "trouble", stage: "mail" }],
    ["rcpt", ["-q", "rcpt"], { kind: "trouble", stage: "rcpt" }],
    ["data", ["-q", "data"], { kind: "trouble", stage: "data" }],
    ["the message", ["-q", "."], { kind: "trouble", stage: "final" }],
  ] as [string, string[], object][])(
    "a fault at %s %j is the outcome of every message",
    async (_, switches, expected) => {
      for (const { result } of await deliver(await sink(...switches), 30))
        expect(result).toMatchObject(expected);
    },
  );
});
