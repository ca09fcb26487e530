import { afterEach, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { log } from "../../src/log.ts";
import { createPool } from "../../src/smtp/client/pool.ts";
import { startMx } from "../support/mx.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

test("a destination has no more connections than allowed even if an old one is still sending QUIT", async () => {
  const quit = Promise.withResolvers<string>();
  const answers = Promise.withResolvers<string>();
  const mx = startMx({ answers: { QUIT: () => quit.promise } });
  const pool = createPool(
    { clock: systemClock, log: log("smtp") },
    { maxConnectionsPerDestination: 1, maxMessagesPerConnection: 1 },
  );
  stops.push(
    mx.stop,
    () => pool.close(0),
    () => answers.resolve("250 ok"),
  );
  const hosts = [{ name: "mx.test", addresses: [mx.ip] }];
  const to = { key: "k", hosts, port: mx.port, tls: "never", ehloName: "us.test" } as const;
  const deliver = () =>
    pool.deliver(to, {
      mailFrom: "a@out.test",
      rcptTo: "b@in.test",
      raw: Buffer.from("Subject: x\r\n\r\nx\r\n"),
    });
  // Its connection has had its number of messages. It sends QUIT, which the peer answers slowly.
  await deliver();
  // From here on each message waits for its answer, so that its connection stays open.
  mx.set({ ".": () => answers.promise });
  const second = deliver();
  await mx.connections.reached(2);
  quit.resolve("221 bye");
  await mx.closed.reached(1);
  await mx.visit();
  const third = deliver();
  await mx.visit();
  // With one connection allowed, and the second message on it, the third has to wait: besides those two, there were
  // two visits.
  expect(mx.connections.items).toHaveLength(4);
  answers.resolve("250 ok");
  await Promise.all([second, third]);
});
