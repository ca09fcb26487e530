import { expect, test } from "bun:test";
import { log } from "../../../src/log.ts";
import { openMemoryQueue } from "../../../src/queue/memory.ts";
import type { Job, QueueName } from "../../../src/queue/port.ts";
import { chanceOf, steppingClock } from "../../support/chance.ts";

/** Number of schedules, each with its own seed. */
const SCHEDULES = 500;
const MAX_STEPS = 3_000;
const NAMES: readonly [QueueName, QueueName, QueueName] = ["transmit", "retry", "push"];
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

async function schedule(seed: number): Promise<string[]> {
  const chance = chanceOf(seed);
  const clock = steppingClock();
  const faults: string[] = [];
  const queue = openMemoryQueue({ clock, log: log("queue") });
  const keys = 1 + chance.below(40);
  /** Jobs added since their last start, and running jobs, by queue and key. */
  const owed = new Set<string>();
  const inHand = new Map<QueueName, Set<string>>(NAMES.map((name) => [name, new Set()]));
  let [closed, ended] = [false, false];

  const working = (name: QueueName, concurrency: number) =>
    queue.work(
      name,
      async (job: Job) => {
        const running = inHand.get(name) ?? new Set();
        const id = `${name} ${job.key}`;
        if (running.has(job.key)) faults.push(`${id} is in hand twice`);
        if (!owed.delete(id)) faults.push(`${id} was handed out though nobody had added it`);
        if (closed) faults.push(`${id} was handed out after the close`);
        running.add(job.key);
        if (running.size > concurrency) faults.push(`${running.size} of ${concurrency} jobs in hand`);
        if (chance.happens(0.7))
          await new Promise<void>((resolve) => clock.after(chance.below(100), resolve));
        running.delete(job.key);
        if (ended) faults.push(`${id} ended after the close`);
        if (chance.happens(0.1)) throw new Error("a job that fails");
      },
      concurrency,
    );
  for (const name of NAMES) clock.after(chance.below(50), () => working(name, 1 + chance.below(5)));
  for (let at = chance.below(60); at > 0; at--)
    clock.after(chance.below(200), () => {
      const name = chance.pick(NAMES);
      const jobs = Array.from({ length: chance.below(5) }, () => ({
        key: `k${chance.below(keys)}`,
        lane: "l",
      }));
      if (!closed) for (const { key } of jobs) owed.add(`${name} ${key}`);
      void queue.add(name, jobs);
    });
  if (chance.happens(0.3))
    clock.after(chance.below(300), async () => {
      closed = true;
      await queue.close(1_000);
      ended = true;
    });
  // The queue starts jobs a turn after they were added, or after other jobs have ended.
  for (let step = 0, still = 0; step < MAX_STEPS && still < keys + 2; step++) {
    await turn();
    still = clock.next() ? 0 : still + 1;
    while (chance.happens(0.4) && clock.next());
  }
  if (!closed && owed.size > 0) faults.push(`${owed.size} jobs were never handed out`);
  if (closed && !ended) faults.push("the close never ended");
  if (clock.pending() > 0) faults.push(`${clock.pending()} timers are left`);
  return faults;
}

test(`${SCHEDULES} random schedules: each job runs after it was added, and never twice at a time`, async () => {
  const failed: string[] = [];
  for (let seed = 1; seed <= SCHEDULES && failed.length < 10; seed++) {
    const faults = await schedule(seed);
    if (faults.length > 0) failed.push(`seed ${seed}: ${faults.slice(0, 3).join("; ")}`);
  }
  expect(failed).toEqual([]);
});
