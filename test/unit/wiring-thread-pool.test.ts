import { expect, test } from "bun:test";
import { turn } from "../../src/core/turn.ts";
import { Stopping } from "../../src/flows/renderings.ts";
import {
  BEAT_MS,
  BEATS,
  type FromThread,
  PULSE_OCTETS,
  type ToThread,
} from "../../src/wiring/threads/protocol.ts";
import { IDLE_MS, MAX_OCTETS_IN_HAND, ThreadPool } from "../../src/wiring/threads/pool.ts";
import { MAX_TASK_MS } from "../../src/wiring/threads/thread.ts";
import { manualClock } from "../support/manual-clock.ts";

const STALL_MS = 1000;

/** A thread that beats at each look and does what it is told to. */
class Thread {
  pulse: Int32Array = new Int32Array(2);
  readonly work: number[] = [];
  ended = false;
  onmessage: ((event: { data: FromThread<string> }) => void) | null = null;
  onerror: ((event: { message: string }) => void) | null = null;

  postMessage(message: ToThread<null, string>): void {
    if (message.kind === "start") this.pulse = new Int32Array(message.pulse);
    else this.work.push(message.id);
  }

  addEventListener(): void {}

  terminate(): void {
    this.ended = true;
  }

  beat(): void {
    Atomics.add(this.pulse, BEATS, 1);
  }

  /** Does the task it was given first. */
  finish(): void {
    const id = this.work.shift() ?? 0;
    this.onmessage?.({ data: { id, found: "done" } });
  }
}

/** A pool of threads that `open` makes, in which so many octets may wait; "unsendable" cannot be sent. */
function scene(
  open: (nth: number) => Thread = () => new Thread(),
  octets: number = Number.POSITIVE_INFINITY,
) {
  const clock = manualClock();
  const threads: Thread[] = [];
  let opened = 0;
  const pool = new ThreadPool<string, string>(clock, {
    threads: 2,
    open: () => {
      const thread = open(++opened);
      threads.push(thread);
      return thread as unknown as Worker;
    },
    settings: null,
    stallMs: STALL_MS,
    waiting: { tasks: Number.POSITIVE_INFINITY, octets },
    sent(asked) {
      if (asked === "unsendable") throw new RangeError("too deep");
      return asked;
    },
    givenUp: () => "given up",
  });
  const pass = (ms: number): void => {
    for (let passed = 0; passed < ms; passed += STALL_MS / 4) {
      for (const thread of threads) thread.beat();
      clock.advance(STALL_MS / 4);
    }
  };
  return { clock, pool, threads, pass };
}

test("a task that cannot be sent, behind the last one, has no thread ended under later work", async () => {
  const { pool, threads, pass } = scene();
  const large = pool.run("large", MAX_OCTETS_IN_HAND);
  const unsendable = pool.run("unsendable", 1);
  threads[0]?.finish();
  expect(await large).toBe("done");
  await expect(unsendable).rejects.toThrow("too deep");
  pass(IDLE_MS - MAX_TASK_MS / 2);
  const later = pool.run("later", 1);
  pass(MAX_TASK_MS / 2 + STALL_MS);
  expect(threads.map(({ ended }) => ended)).toEqual([false]);
  threads[0]?.finish();
  expect(await later).toBe("done");
  pass(IDLE_MS);
  expect(threads.map(({ ended }) => ended)).toEqual([true]);
});

test("threads are ended when they have rested, also where the last task was lost with another one", async () => {
  const { clock, pool, threads, pass } = scene();
  const many = Array.from({ length: 17 }, () => pool.run("task", 1));
  expect(threads.length).toBe(2);
  for (let task = 0; task < 16; task++) threads[0]?.finish();
  // It does not even start: its task has failed.
  threads[1]?.onerror?.({ message: "no code" });
  await Promise.allSettled(many);
  await expect(many.at(-1)).rejects.toThrow("no code");
  pass(IDLE_MS);
  expect(threads.map(({ ended }) => ended)).toEqual([true, true]);
  expect(clock.pending()).toBe(0);
});

test("a thread that the system does not give fails its task and takes nobody's room", async () => {
  const { pool, threads } = scene((nth) => {
    if (nth <= 2) throw new Error("no thread");
    return new Thread();
  });
  const refused = [pool.run("large", MAX_OCTETS_IN_HAND), pool.run("large", MAX_OCTETS_IN_HAND)];
  for (const task of refused) await expect(task).rejects.toThrow("no thread");
  const both = [pool.run("half", MAX_OCTETS_IN_HAND / 2), pool.run("half", MAX_OCTETS_IN_HAND / 2)];
  expect(threads[0]?.work.length).toBe(2);
  threads[0]?.finish();
  threads[0]?.finish();
  expect(await Promise.all(both)).toEqual(["done", "done"]);
});

test("at the end all that is left is rejected: what is tried alone, what is to be, the next and who waits", async () => {
  const { clock, pool, threads } = scene();
  const run = (name: string) => pool.run(name, MAX_OCTETS_IN_HAND / 2);
  const suspected = [run("one"), run("other")];
  threads[0]?.beat();
  // Which of them it was at nobody knows: each is tried by itself, one after the other.
  threads[0]?.onerror?.({ message: "out of memory" });
  expect(threads.map(({ work }) => work.length)).toEqual([2, 1]);
  const ends: unknown[] = [];
  for (const task of [...suspected, run("next"), run("waiting"), run("waiting too")])
    task.catch((error: unknown) => ends.push(error));
  pool.close();
  await turn();
  expect(ends.map((end) => end instanceof Stopping)).toEqual([true, true, true, true, true]);
  expect(threads[1]?.ended).toBe(true);
  expect(clock.pending()).toBe(0);
});

test("of the tasks of a thread that broke each has its turn alone, and what comes meanwhile has a thread that works", async () => {
  const { pool, threads } = scene();
  const tasks = [pool.run("one", 1), pool.run("other", 1)];
  threads[0]?.beat();
  threads[0]?.onerror?.({ message: "out of memory" });
  tasks.push(pool.run("later", 1));
  expect(threads.map(({ work, ended }) => [work.length, ended])).toEqual([
    [2, true],
    [1, false],
    [1, false],
  ]);
  threads[1]?.finish();
  threads[2]?.finish();
  expect(threads.map(({ work, ended }) => [work.length, ended]).slice(1)).toEqual([
    [0, true],
    [0, false],
    [1, false],
  ]);
  threads[3]?.finish();
  expect(await Promise.all(tasks)).toEqual(["done", "done", "done"]);
});

test("octets that wait no longer leave their room to others", async () => {
  const { pool, threads } = scene(undefined, 2 * MAX_OCTETS_IN_HAND);
  const run = () => pool.run("large", MAX_OCTETS_IN_HAND);
  const tasks = Array.from({ length: 5 }, run);
  expect(await run()).toBeNull();
  for (let again = 0; again < 5; again++) {
    threads[0]?.finish();
    tasks.push(run());
    expect(await run()).toBeNull();
  }
  for (let left = 0; left < 5; left++) threads[0]?.finish();
  expect(await Promise.all(tasks)).toEqual(tasks.map(() => "done"));
});

test("a thread beats once at a time, however many tasks come and go between two beats", async () => {
  const worker = new Worker(new URL("../support/quick-worker.ts", import.meta.url).href);
  try {
    const pulse = new SharedArrayBuffer(PULSE_OCTETS);
    const tell = (message: ToThread<null, number>): void => worker.postMessage(message);
    const beats = (): number => Atomics.load(new Int32Array(pulse), BEATS);
    const last = new Promise((resolve) => {
      worker.onmessage = ({ data }: MessageEvent<FromThread<string>>) => {
        if (data.id === 1000) resolve(null);
      };
    });
    tell({ kind: "start", pulse, settings: null });
    for (let id = 1; id < 1000; id++) tell({ kind: "work", id, asked: 0 });
    tell({ kind: "work", id: 1000, asked: 5 * BEAT_MS });
    await last;
    // Once at the start; the rest within the half second of the last task, or a little more.
    expect(beats()).toBeGreaterThanOrEqual(4);
    expect(beats()).toBeLessThan(100);
  } finally {
    worker.terminate();
  }
});
