import { afterEach, expect, test } from "bun:test";
import { log } from "../../src/log.ts";
import type { Destination, OutboundMail } from "../../src/smtp/client/delivery.ts";
import { createPool, MAX_WAITING_PER_DESTINATION, type Pool } from "../../src/smtp/client/pool.ts";
import { VERDICT_WAIT_MS } from "../../src/smtp/client/pool-state.ts";
import { BACK_OFF_MS } from "../../src/smtp/client/pool-dispatch.ts";
import { chanceOf, steppingClock } from "../support/chance.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { type ModelHost, modelPeers } from "../support/model-peers.ts";
import { type MxOptions, startMx, type TestMx } from "../support/mx.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const mail = (name: string): OutboundMail => ({
  mailFrom: "b+1@out.test",
  rcptTo: name,
  raw: Buffer.from(`Subject: ${name}\r\n\r\nx\r\n`),
});

/** A peer over TCP, and a pool with a manual clock. */
function one(options: MxOptions = {}): { mx: TestMx; pool: Pool; clock: ManualClock; to: Destination } {
  const mx = startMx(options);
  const clock = manualClock();
  const pool = createPool({ clock, log: log("smtp") }, { maxConnectionsPerDestination: 1 });
  stops.push(mx.stop, () => pool.close(0));
  const hosts = [{ name: "mx.test", addresses: [mx.ip] }];
  return { mx, pool, clock, to: { key: "k", hosts, port: mx.port, tls: "never", ehloName: "us.test" } };
}

/** Peers in memory, and a pool that uses them. */
function inMemory(hosts: readonly ModelHost[], maxConnectionsPerDestination: number) {
  const clock = steppingClock();
  const peers = modelPeers(clock, chanceOf(1), hosts, () => undefined);
  const pool = createPool(
    { clock, log: log("smtp"), connect: peers.connect },
    { maxConnectionsPerDestination },
  );
  const named = hosts.map(({ name }, at) => ({ name, addresses: [`192.0.2.${at}`] }));
  const to: Destination = { key: "k", hosts: named, port: 25, tls: "never", ehloName: "us.test" };
  return { clock, peers, pool, to };
}

const calm = { down: 0, mute: 0, busy: 0, odd: {}, slowMs: 1, pipelining: false, takes: 100 };

test("a message that waits for one that hangs gets another connection attempt, even if nothing else happens", async () => {
  const host: ModelHost = { ...calm, name: "mx0", odd: { final: [[1, "silent"]] }, takes: 1 };
  const { clock, peers, pool, to } = inMemory([host], 2);
  for (const name of ["m0", "m1"]) void pool.deliver(to, mail(name));
  // The host accepts one connection, and first refuses a second one.
  while (clock.elapsed() < BACK_OFF_MS) {
    await turn();
    if (peers.failed) host.takes = 2;
    if (!clock.next()) break;
  }
  for (let turns = 0; turns < 10; turns++) {
    await turn();
    if (clock.elapsed() < BACK_OFF_MS + 100) clock.next();
  }
  expect(peers.failed).toBe(true);
  expect(peers.mail("m1").hosts).toEqual(["mx0"]);
});

test("messages that wait for the next host count with those that wait for the first", async () => {
  const hosts = [
    { ...calm, name: "mx0", odd: { rcpt: [[1, "later"]] } } satisfies ModelHost,
    { ...calm, name: "mx1", mute: 1 },
  ];
  const { clock, peers, pool, to } = inMemory(hosts, 2);
  for (let at = 0; at <= MAX_WAITING_PER_DESTINATION; at++) void pool.deliver(to, mail(`m${at}`));
  while (peers.mail("m99").hosts.length === 0) {
    await turn();
    clock.next();
  }
  // Two are in flight.
  const more = ["x0", "x1", "x2"].map((name) => pool.deliver(to, mail(name)));
  const refused = await Promise.race([more[2], turn()]);
  expect(refused?.result).toMatchObject({ reason: "too many deliveries wait" });
});

test("the wait for a message without successors restarts with the next message", async () => {
  const verdicts = [Promise.withResolvers<string>(), Promise.withResolvers<string>()] as const;
  const asked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const judged = ([0, 1] as const).map((at) => () => {
    asked[at].resolve();
    return verdicts[at].promise;
  });
  const { pool, clock, to } = one({ answers: { ".": judged } });
  const aborts = [new AbortController(), new AbortController()] as const;
  const first = pool.deliver(to, mail("m0"), aborts[0].signal);
  await asked[0].promise;
  aborts[0].abort();
  clock.advance(VERDICT_WAIT_MS / 2);
  verdicts[0].resolve("250 ok");
  expect((await first).result).toMatchObject({ code: 250 });
  const second = pool.deliver(to, mail("m1"), aborts[1].signal);
  await asked[1].promise;
  clock.advance(VERDICT_WAIT_MS / 2 - 1);
  aborts[1].abort();
  // By now the wait of the first one would be over.
  clock.advance(VERDICT_WAIT_MS - 1);
  verdicts[1].resolve("250 ok");
  expect((await second).result).toMatchObject({ code: 250 });
});

test("a close waits for the QUIT of connections that end within the grace period", async () => {
  const verdict = Promise.withResolvers<string>();
  const farewell = Promise.withResolvers<string>();
  const said = Promise.withResolvers<void>();
  const quit = () => {
    said.resolve();
    return farewell.promise;
  };
  const { mx, pool, to } = one({ answers: { ".": () => verdict.promise, QUIT: quit } });
  const sent = pool.deliver(to, mail("m0"));
  await mx.commands.reached(4);
  let closed = false;
  const closing = pool.close(60_000).then(() => {
    closed = true;
  });
  verdict.resolve("250 ok");
  expect((await sent).result).toMatchObject({ code: 250 });
  await said.promise;
  await turn();
  expect(closed).toBe(false);
  farewell.resolve("221 bye");
  await closing;
});
