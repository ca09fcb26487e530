import { expect, test } from "bun:test";
import { Lanes } from "../../src/flows/lanes.ts";
import { chanceOf, steppingClock } from "../support/chance.ts";

/** Schedules tried, each with a seed of its own. */
const SCHEDULES = 1000;
const MAX_STEPS = 5_000;
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

interface Known {
  lane: string;
  running: boolean;
  runs: number;
}

async function schedule(seed: number): Promise<string[]> {
  const chance = chanceOf(seed);
  const clock = steppingClock();
  const faults: string[] = [];
  const perLane = 1 + chance.below(4);
  const total = perLane + chance.below(6);
  const slowTotal = 2 * perLane + chance.below(12);
  const slowness = chance.pick([0, 0.3, 0.9]);
  const jobs = new Map<string, Known>();
  const runningIn = (lane?: string): number =>
    [...jobs.values()].filter((job) => job.running && (lane === undefined || job.lane === lane)).length;

  const lanes = new Lanes(
    clock,
    { perLane, total, slowAfterMs: 2000, slowTotal, waitingPerLane: 20, waiting: 60 },
    async ({ key }) => {
      const job = jobs.get(key);
      if (job === undefined) throw new Error("an unknown job");
      if (job.running) faults.push(`${key} runs twice at a time`);
      job.running = true;
      job.runs++;
      if (runningIn(job.lane) > perLane)
        faults.push(`${job.lane} has ${runningIn(job.lane)} of ${perLane} places`);
      if (runningIn() > total + slowTotal) faults.push(`${runningIn()} of ${total + slowTotal} places`);
      if (chance.happens(0.8))
        await new Promise<void>((resolve) => {
          clock.after(chance.happens(slowness) ? 2_000 + chance.below(30_000) : chance.below(1000), resolve);
        });
      job.running = false;
      if (chance.happens(0.1)) throw new Error("a push that fails");
    },
  );

  const count = chance.below(80);
  for (let at = 0; at < count; at++)
    clock.after(chance.below(chance.pick([1, 1000, 60_000])), () => {
      const job = { key: `j${at}`, lane: `l${chance.below(8)}` };
      if (!lanes.wants(job)) return;
      jobs.set(job.key, { lane: job.lane, running: false, runs: 0 });
      lanes.offer(job);
      lanes.offer(job);
    });
  for (let step = 0; step < MAX_STEPS; step++) {
    await turn();
    // Work is conserved: nobody with a place of their own waits while neither pace is full.
    const waits = [...jobs.values()].some(({ lane, runs }) => runs === 0 && runningIn(lane) < perLane);
    if (waits && runningIn() < Math.min(total, Math.ceil(slowTotal / 2)))
      faults.push(`a job waits beside ${runningIn()} in hand`);
    if (!clock.next()) break;
    while (chance.happens(0.4) && clock.next());
  }
  for (const [key, { runs }] of jobs) {
    if (runs !== 1) faults.push(`${key} ran ${runs} times`);
    if (lanes.has(key)) faults.push(`${key} is still known`);
  }
  if (clock.pending() > 0) faults.push(`${clock.pending()} timers are left`);
  await lanes.close();
  return faults;
}

test(`${SCHEDULES} schedules of pushes: each runs once, none beyond its places, none is left waiting`, async () => {
  const failed: string[] = [];
  for (let seed = 1; seed <= SCHEDULES && failed.length < 10; seed++) {
    const faults = await schedule(seed);
    if (faults.length > 0) failed.push(`seed ${seed}: ${faults.slice(0, 3).join("; ")}`);
  }
  expect(failed).toEqual([]);
});
