import { expect, test } from "bun:test";
import { laneOf, Lanes } from "../../../../src/flows/webhooks/push-lanes.ts";
import { chanceOf, steppingClock } from "../../../support/chance.ts";

/** Number of schedules, each with its own seed. */
const SCHEDULES = 400;
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
  const mostPerLane = perLane + chance.below(8);
  const total = perLane + chance.below(6);
  const slowTotal = 2 * perLane + chance.below(12);
  const slowness = chance.pick([0, 0.3, 0.9]);
  const jobs = new Map<string, Known>();
  const runningIn = (lane?: string): number =>
    [...jobs.values()].filter((job) => job.running && (lane === undefined || job.lane === lane)).length;

  /** Running jobs of the lanes whose names begin in this way. */
  const runningOf = (prefix: string): number =>
    [...jobs.values()].filter((job) => job.running && job.lane.startsWith(prefix)).length;

  const lanes = new Lanes(
    clock,
    { perLane, mostPerLane, total, slowAfterMs: 2000, slowTotal, waitingPerLane: 20, waiting: 60 },
    async ({ key }) => {
      const job = jobs.get(key);
      if (job === undefined) throw new Error("an unknown job");
      if (job.running) faults.push(`${key} runs twice at a time`);
      job.running = true;
      job.runs++;
      if (runningIn(job.lane) > mostPerLane)
        faults.push(`${job.lane} has ${runningIn(job.lane)} of ${mostPerLane} places`);
      if (runningIn() > total + slowTotal) faults.push(`${runningIn()} of ${total + slowTotal} places`);
      if (chance.happens(0.8))
        await new Promise<void>((resolve) => {
          clock.after(chance.happens(slowness) ? 2_000 + chance.below(30_000) : chance.below(1000), resolve);
        });
      job.running = false;
      if (chance.happens(0.1)) throw new Error("a push that fails");
      return chance.pick([
        { well: true, ms: chance.below(100) },
        { well: chance.happens(0.5), ms: 1000 },
        null,
      ]);
    },
  );

  const count = chance.below(80);
  for (let at = 0; at < count; at++)
    clock.after(chance.below(chance.pick([1, 1000, 60_000])), () => {
      const job = { key: `j${at}`, lane: laneOf(`p${chance.below(3)}`, `l${chance.below(4)}`) };
      if (!lanes.wants(job)) return;
      jobs.set(job.key, { lane: job.lane, running: false, runs: 0 });
      lanes.offer(job);
      lanes.offer(job);
    });
  for (let step = 0; step < MAX_STEPS; step++) {
    await turn();
    // Work is conserved: no job that has a free place in its lane waits while neither pace is full.
    const free = Math.min(total, Math.ceil(slowTotal / 2)) - runningIn();
    const mayBegin = (lane: string): boolean =>
      runningIn(lane) < perLane && runningOf(lane.slice(0, lane.indexOf("/") + 1)) < free;
    if ([...jobs.values()].some(({ lane, runs }) => runs === 0 && mayBegin(lane)))
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

test(`${SCHEDULES} random schedules: each push runs once, within its places, and none is left waiting`, async () => {
  const failed: string[] = [];
  for (let seed = 1; seed <= SCHEDULES && failed.length < 10; seed++) {
    const faults = await schedule(seed);
    if (faults.length > 0) failed.push(`seed ${seed}: ${faults.slice(0, 3).join("; ")}`);
  }
  expect(failed).toEqual([]);
});
