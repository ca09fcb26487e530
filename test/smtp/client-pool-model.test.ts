import { expect, test } from "bun:test";
import { log } from "../../src/log.ts";
import type { DeliveryReport, Destination } from "../../src/smtp/client/delivery.ts";
import { createPool } from "../../src/smtp/client/pool.ts";
import { BACK_OFF_MS } from "../../src/smtp/client/pool-dispatch.ts";
import { type Chance, chanceOf, steppingClock } from "../support/chance.ts";
import { type ModelHost, modelPeers } from "../support/model-peers.ts";

/** Number of schedules, each with its own seed. `POOL_SEED` is the first one. */
const SCHEDULES = Number(process.env.POOL_SCHEDULES ?? 1500);
const FIRST_SEED = Number(process.env.POOL_SEED ?? 1);
/** Timers fired in one schedule. If there are more, it is stuck. */
const MAX_STEPS = 20_000;
const GRACE_MS = 60_000;
const RAW = Buffer.from("Subject: x\r\n\r\nx\r\n");

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

const STAGES = ["mail", "rcpt", "data", "final"] as const;
const ODD = ["later", "later", "later", "no", "closing", "hangs up", "silent"] as const;

function someHost(chance: Chance, name: string): ModelHost {
  const share = (): number => chance.pick([0, 0, 0, 0.1, 0.5, 1]);
  const odd: ModelHost["odd"] = {};
  for (const stage of STAGES)
    if (chance.happens(0.3)) odd[stage] = [[chance.pick([0.1, 0.5, 1]), chance.pick(ODD)]];
  return {
    name,
    down: share(),
    mute: chance.pick([0, 0, 0, 0, 0.1, 1]),
    busy: share(),
    odd,
    slowMs: chance.pick([1, 10, 1000, 100_000]),
    pipelining: chance.happens(0.6),
    takes: chance.pick([1, 2, 100, 100]),
  };
}

function destinationOf(hosts: readonly ModelHost[]): Destination {
  return {
    key: "k",
    hosts: hosts.map(({ name }) => ({ name, addresses: [`192.0.2.${name.slice(2)}`] })),
    port: 25,
    tls: "never",
    ehloName: "us.test",
  };
}

interface Delivery {
  rcptTo: string;
  report: DeliveryReport | null;
  aborted: boolean;
  listeners: number;
}

/** Runs one schedule. Returns the faults. */
async function schedule(seed: number): Promise<string[]> {
  const chance = chanceOf(seed);
  const clock = steppingClock();
  const limit = chance.pick([1, 1, 2, 3, 5]);
  const hosts = Array.from({ length: 1 + chance.below(5) }, (_, at) => someHost(chance, `mx${at}`));
  const names = hosts.map(({ name }) => name);
  const peers = modelPeers(clock, chance, hosts, () =>
    // If a connection makes room, it begins its QUIT in the same turn.
    queueMicrotask(() => {
      const standing = peers.standing(names);
      if (standing > limit) peers.faults.push(`${standing} connections of ${limit}`);
    }),
  );
  const pool = createPool(
    { clock, log: log("smtp"), connect: peers.connect },
    {
      maxConnectionsPerDestination: limit,
      maxMessagesPerConnection: chance.pick([1, 3, 500]),
    },
  );
  const deliveries: Delivery[] = [];
  let closed = false;

  function deliver(): void {
    const delivery: Delivery = {
      rcptTo: `m${deliveries.length}`,
      report: null,
      aborted: false,
      listeners: 0,
    };
    deliveries.push(delivery);
    const controller = new AbortController();
    const { signal } = controller;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...given: Parameters<typeof add>) => {
      delivery.listeners++;
      add(...given);
    };
    signal.removeEventListener = (...given: Parameters<typeof remove>) => {
      delivery.listeners--;
      remove(...given);
    };
    const mail = { mailFrom: "b@out.test", rcptTo: delivery.rcptTo, raw: RAW };
    void pool.deliver(destinationOf(hosts), mail, signal).then((report) => {
      if (delivery.report !== null) peers.faults.push(`${delivery.rcptTo} was answered twice`);
      delivery.report = report;
      // A message that arrives in the very turn in which another ends.
      if (deliveries.length < mails && chance.happens(0.5)) deliver();
    });
    if (chance.happens(aborts))
      clock.after(chance.below(200_000), () => {
        delivery.aborted = true;
        controller.abort();
      });
  }

  const mails = 1 + chance.below(25);
  const aborts = chance.pick([0, 0, 0.2, 1]);
  const spreadMs = chance.pick([1, 1000, 600_000]);
  for (let at = 0; at < mails; at++)
    clock.after(chance.below(spreadMs), async () => {
      // Between the turns of other work started by the same timer.
      for (let hop = chance.below(12); hop > 0; hop--) await Promise.resolve();
      if (deliveries.length < mails) deliver();
    });
  if (chance.happens(0.2))
    clock.after(chance.below(2 * spreadMs), () => {
      closed = true;
      void pool.close(GRACE_MS);
    });
  if (chance.happens(0.2))
    clock.after(chance.below(spreadMs), () =>
      clock.step(chance.pick([-86_400_000, -60_000, 60_000, 86_400_000])),
    );

  let idleWork = 0;
  for (let step = 0; step < MAX_STEPS; step++) {
    await turn();
    const open = deliveries.filter(({ report }) => report === null);
    const waiting = open.filter(({ rcptTo }) => peers.mail(rcptTo).inFlight === 0).length;
    const [opening, standing] = [peers.opening(names), peers.standing(names)];
    // Work is conserved: if a delivery waits, a connection is being opened wherever one may be.
    const mustOpen = opening === 0 ? clock.elapsed() > peers.openingEndedAt + BACK_OFF_MS : !peers.failed;
    if (!closed && mustOpen && waiting > opening && standing < limit) idleWork++;
    if (!clock.next()) break;
    // Several in one turn, so that the steps of one lane come between those of another.
    while (chance.happens(0.5) && clock.next());
  }
  await turn();
  const { faults } = peers;
  if (idleWork > 0) faults.push(`${idleWork} times mail waited for a connection that could have been opened`);
  for (const { rcptTo, report, listeners } of deliveries) {
    if (report === null) faults.push(`${rcptTo} was never answered`);
    if (listeners !== 0) faults.push(`${rcptTo} has ${listeners} listeners left`);
    const { mayHave } = peers.mail(rcptTo);
    const { hosts: given } = peers.mail(rcptTo);
    const taken = report?.result.kind === "reply" && report.result.code === 250;
    if (taken && mayHave !== report.mx)
      faults.push(`${rcptTo} was told to be at ${report.mx}, not ${mayHave}`);
    if (new Set(given).size > 4) faults.push(`${rcptTo} was given to ${given.join(" ")}`);
  }
  if (clock.pending() > 0) faults.push(`${clock.pending()} timers are left`);
  if (pool.connections > 0) faults.push(`${pool.connections} connections are left`);
  if (pool.queues > 0) faults.push(`${pool.queues} queues are left`);
  return faults;
}

test(`${SCHEDULES} random schedules of peers, messages, aborts, closings and clocks keep the pool's promises`, async () => {
  const failed: string[] = [];
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SCHEDULES && failed.length < 20; seed++) {
    const faults = await schedule(seed);
    if (faults.length > 0) failed.push(`seed ${seed}: ${faults.slice(0, 3).join("; ")}`);
  }
  expect(failed).toEqual([]);
});

test.each([1, 2, 3])(
  "a message put off by one host reaches the next although others keep coming, over %d connections",
  async (limit) => {
    const clock = steppingClock();
    const calm = { down: 0, mute: 0, busy: 0, slowMs: 10, pipelining: false, takes: 100 };
    const odd: ModelHost["odd"] = { rcpt: [[0.3, "later"]] };
    const hosts: ModelHost[] = ["mx0", "mx1", "mx2"].map((name) => ({ ...calm, name, odd }));
    const peers = modelPeers(clock, chanceOf(limit), hosts, () => undefined);
    const pool = createPool(
      { clock, log: log("smtp"), connect: peers.connect },
      { maxConnectionsPerDestination: limit },
    );
    const answeredAt: number[] = [];
    let given = 0;
    const deliver = (): void => {
      const nth = given++;
      const mail = { mailFrom: "b@out.test", rcptTo: `m${nth}`, raw: RAW };
      void pool.deliver(destinationOf(hosts), mail).then(() => {
        answeredAt[nth] = given;
        if (given < 1000) deliver();
      });
    };
    for (let at = 0; at < 20; at++) deliver();
    for (let step = 0; step < MAX_STEPS && answeredAt.filter(Boolean).length < 1000; step++) {
      await turn();
      if (!clock.next()) break;
    }
    expect(answeredAt.length).toBe(1000);
    // Messages that came after one and were answered before it. Of those present at the same time each has a few
    // turns.
    const overtaken = answeredAt.map((at, nth) => at - nth);
    expect(Math.max(...overtaken)).toBeLessThan(100);
  },
);
