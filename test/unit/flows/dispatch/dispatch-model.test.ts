import { expect, test } from "bun:test";
import { Dispatch } from "../../../../src/flows/dispatch/dispatch.ts";
import { createPacer } from "../../../../src/flows/dispatch/pacer.ts";
import { type DeliveryReport, noFacts, type DeliveryRoute } from "../../../../src/flows/deliver/outcome.ts";
import { testLanes } from "../../../support/lanes.ts";
import { type Chance, chanceOf, steppingClock } from "../../../support/chance.ts";

/** Number of schedules, each with its own seed. */
const SCHEDULES = Number(process.env.DISPATCH_SCHEDULES ?? 600);
const MAX_STEPS = 20_000;
const RATE = 5;
/** Longest time to compose a message, in milliseconds. */
const DESK_MS = 20;
const RAW = Buffer.alloc(100);
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

interface Known {
  carried: number;
  inHand: boolean;
}

function someReport(chance: Chance, startedAt: number, durationMs: number): DeliveryReport {
  const facts = { ...noFacts(startedAt, durationMs), mx: "mx.test", ip: "192.0.2.1" };
  const reply = (stage: string, code: number) => ({ stage, code, enhanced: null, text: "as it is" });
  return chance.pick<DeliveryReport>([
    { ...facts, kind: "accepted", reply: reply("final", 250) },
    { ...facts, kind: "accepted", reply: reply("final", 250) },
    { ...facts, kind: "refused", reply: reply("rcpt", 550) },
    { ...facts, kind: "refused", reply: reply("connect", 421) },
    { ...facts, kind: "trouble", stage: "connect", reason: "ECONNREFUSED" },
    { ...facts, kind: "trouble", stage: "final", reason: "connection closed by the peer" },
  ]);
}

async function schedule(seed: number): Promise<string[]> {
  const chance = chanceOf(seed);
  const clock = steppingClock();
  const faults: string[] = [];
  const jobs = new Map<string, Known>();
  const limits = {
    perConnection: 1 + chance.below(4),
    own: 10,
    trials: 1 + chance.below(3),
    deferrals: 4,
    preparing: 1 + chance.below(5),
    delivering: 1 + chance.below(10),
    octets: 100 * (1 + chance.below(10)),
    waiting: 60,
  };
  const restMs = chance.pick([0, 1000, 30_000]);
  const pace = chance.happens(0.4) ? createPacer(clock) : null;
  const lanes = testLanes(clock, { connections: 1, rate: RATE });
  const steps = chance.happens(0.2);
  const destinations = 1 + chance.below(3);
  const spreadMs = chance.pick([1, 10_000, 300_000]);
  const [slowness, lookMs] = [chance.pick([10, 1000, 100_000]), chance.pick([1, 1000, 100_000])];
  /** Unanswered messages of each destination, and when the last ones began. */
  const underWay = new Map<string, number>();
  const sentAt = new Map<string, number[]>();
  const wait = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve));

  const deliverTo =
    (destination: string): DeliveryRoute["deliver"] =>
    async (_shipment, signal) => {
      const startedAt = clock.now();
      const now = (underWay.get(destination) ?? 0) + 1;
      underWay.set(destination, now);
      if (now > limits.perConnection && now > limits.trials)
        faults.push(`${now} messages in flight to ${destination}`);
      const all = [...underWay.values()].reduce((sum, one) => sum + one, 0);
      if (all > limits.delivering) faults.push(`${all} messages in flight of ${limits.delivering}`);
      const times = [...(sentAt.get(destination) ?? []), clock.elapsed()].slice(-RATE - 2);
      sentAt.set(destination, times);
      const [first = 0] = times;
      // One moment may have been left over from before.
      if (pace !== null && !steps && times.length === RATE + 2 && clock.elapsed() - first < 1000 - DESK_MS)
        faults.push(`${RATE + 2} messages to ${destination} in ${clock.elapsed() - first} ms`);
      const aborted = Promise.withResolvers<void>();
      signal?.addEventListener("abort", () => aborted.resolve(), { once: true });
      await Promise.race([wait(chance.below(slowness)), aborted.promise]);
      underWay.set(destination, (underWay.get(destination) ?? 0) - 1);
      if (chance.happens(0.02)) throw new Error("a bug");
      return someReport(chance, startedAt, clock.now() - startedAt);
    };

  const dispatch = new Dispatch(
    {
      clock,
      restMs,
      pace,
      async findDeliveryRoute(domain) {
        if (chance.happens(0.8)) await wait(chance.below(lookMs));
        if (chance.happens(0.1)) throw new Error("a bug");
        // Some domains move to another destination.
        const destination = `d${chance.happens(0.2) ? chance.below(destinations) : Number(domain.slice(1)) % destinations}`;
        if (chance.happens(0.1)) {
          const report = () =>
            ({ ...noFacts(clock.now()), kind: "trouble", stage: "dns", reason: "SERVFAIL" }) as const;
          return {
            kind: "none",
            destination: "none",
            knownOutcome: report,
            deliver: async () => report(),
          };
        }
        return {
          kind: "hosts",
          destination,
          lane: lanes.named(destination),
          knownOutcome: null,
          deliver: deliverTo(destination),
        };
      },
      async transmit({ key, lane }, handover) {
        const job = jobs.get(key);
        if (job === undefined) throw new Error("an unknown job");
        if (job.inHand) faults.push(`${key} is in hand twice at a time`);
        job.inHand = true;
        if (chance.happens(0.1)) {
          job.inHand = false;
          return { until: wait(chance.below(DESK_MS)) };
        }
        job.carried++;
        if (chance.happens(0.5)) await wait(chance.below(DESK_MS));
        if (chance.happens(0.9) && handover.knownOutcome() === null)
          await handover
            .deliver({ mailFrom: "", rcptTo: key, domain: lane, raw: RAW, smtpUtf8: false })
            .finally(() => wait(chance.below(5)))
            .catch(() => undefined);
        job.inHand = false;
        if (chance.happens(0.02)) throw new Error("a bug");
        return null;
      },
    },
    limits,
  );

  const count = chance.below(60);
  for (let at = 0; at < count; at++)
    clock.after(chance.below(spreadMs), () => {
      const job = { key: `m${at}`, lane: `d${chance.below(6)}` };
      const retry = chance.happens(0.3);
      if (!dispatch.wants(job, retry)) return;
      jobs.set(job.key, { carried: 0, inHand: false });
      dispatch.offer(job, retry);
      dispatch.offer(job, !retry);
    });
  if (steps)
    clock.after(chance.below(spreadMs), () => clock.step(chance.pick([-86_400_000, -10_000, 86_400_000])));

  for (let step = 0; step < MAX_STEPS; step++) {
    await turn();
    if (!clock.next()) break;
    // Several may start in one turn, but not if moments are counted: a message with its own moment starts a turn
    // later.
    while (pace === null && chance.happens(0.4) && clock.next());
  }
  for (const [key, { carried }] of jobs) {
    if (carried !== 1) faults.push(`${key} was carried ${carried} times`);
    if (dispatch.has(key)) faults.push(`${key} is still known`);
  }
  if (clock.pending() > 0) faults.push(`${clock.pending()} timers are left`);
  await dispatch.close();
  return faults;
}

test(`${SCHEDULES} random schedules: each message is delivered once, within all limits, and none is left waiting`, async () => {
  const failed: string[] = [];
  for (let seed = 1; seed <= SCHEDULES && failed.length < 10; seed++) {
    const faults = await schedule(seed);
    if (faults.length > 0) failed.push(`seed ${seed}: ${faults.slice(0, 3).join("; ")}`);
  }
  expect(failed).toEqual([]);
});
