import { expect, test } from "bun:test";
import { yieldToEventLoop } from "../../src/core/concurrency/event-loop.ts";
import { PoolClosedError } from "../../src/flows/mime/rendering-tasks.ts";
import { BEAT_MS, BEATS, type FromCpu, PULSE_OCTETS, type ToCpu } from "../../src/wiring/cpu/serve.ts";
import { IDLE_MS, LARGE_TASK_OCTETS, MAX_OCTETS_IN_HAND, CpuPool } from "../../src/wiring/cpu/pool.ts";
import { MAX_TASK_MS } from "../../src/wiring/cpu/cpu.ts";
import { manualClock } from "../support/manual-clock.ts";

const STALL_MS = 1000;

/** A thread that answers each heartbeat and follows the test's orders. */
class Thread {
  pulse: Int32Array = new Int32Array(2);
  readonly work: number[] = [];
  ended = false;
  onmessage: ((event: { data: FromCpu<string> }) => void) | null = null;
  onerror: ((event: { message: string }) => void) | null = null;

  postMessage(message: ToCpu<null, string>): void {
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

  /** Finishes the task that it got first. */
  finish(): void {
    const id = this.work.shift() ?? 0;
    this.onmessage?.({ data: { id, found: "done" } });
  }
}

/** A pool of threads that `open` makes, which may queue that many bytes. "unsendable" cannot be sent. */
function scene(
  open: (nth: number) => Thread = () => new Thread(),
  octets: number = Number.POSITIVE_INFINITY,
) {
  const clock = manualClock();
  const threads: Thread[] = [];
  let opened = 0;
  const pool = new CpuPool<string, string>(clock, {
    cpus: 2,
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

test("a task that cannot be sent, after the last one, ends no thread under later work", async () => {
  const { pool, threads, pass } = scene();
  const large = pool.run("large", MAX_OCTETS_IN_HAND);
  const unsendable = pool.run("unsendable", LARGE_TASK_OCTETS + 1);
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

test("idle threads are ended, even if the last task was lost with another one", async () => {
  const { clock, pool, threads, pass } = scene();
  const many = Array.from({ length: 17 }, () => pool.run("task", 1));
  expect(threads.length).toBe(2);
  for (let task = 0; task < 16; task++) threads[0]?.finish();
  // It does not even start, because its task has failed.
  threads[1]?.onerror?.({ message: "no code" });
  await Promise.allSettled(many);
  await expect(many.at(-1)).rejects.toThrow("no code");
  pass(IDLE_MS);
  expect(threads.map(({ ended }) => ended)).toEqual([true, true]);
  expect(clock.pending()).toBe(0);
});

test("if the system gives no thread, the task fails and frees its room", async () => {
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

test("ending a pool rejects every task: the one retried alone, those to be retried, the next and those waiting", async () => {
  const { clock, pool, threads } = scene();
  const run = (name: string) => pool.run(name, MAX_OCTETS_IN_HAND / 2);
  const suspected = [run("one"), run("other")];
  threads[0]?.beat();
  // Any of them may be the culprit, so each is tried alone, one after another.
  threads[0]?.onerror?.({ message: "out of memory" });
  expect(threads.map(({ work }) => work.length)).toEqual([2, 1]);
  const ends: unknown[] = [];
  for (const task of [...suspected, run("next"), run("waiting"), run("waiting too")])
    task.catch((error: unknown) => ends.push(error));
  pool.close();
  await yieldToEventLoop();
  expect(ends.map((end) => end instanceof PoolClosedError)).toEqual([true, true, true, true, true]);
  expect(threads[1]?.ended).toBe(true);
  expect(clock.pending()).toBe(0);
});

test("if a thread breaks, each of its tasks is retried alone, and new tasks get a working thread", async () => {
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

test("a small task passes a large one that has no room, and a larger one does not", async () => {
  const { pool, threads } = scene();
  const tasks = [MAX_OCTETS_IN_HAND, MAX_OCTETS_IN_HAND, LARGE_TASK_OCTETS, LARGE_TASK_OCTETS + 1];
  const ends = tasks.map((octets) => pool.run(String(octets), octets));
  expect(threads.map(({ work }) => work)).toEqual([[1, 3]]);
  for (let left = 0; left < tasks.length; left++) threads[0]?.finish();
  expect(await Promise.all(ends)).toEqual(tasks.map(() => "done"));
});

test("octets that no longer wait make room for others", async () => {
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

test("a thread sends one heartbeat at a time, however many tasks start and end in between", async () => {
  const worker = new Worker(new URL("../support/quick-worker.ts", import.meta.url).href);
  try {
    const pulse = new SharedArrayBuffer(PULSE_OCTETS);
    const tell = (message: ToCpu<null, number>): void => worker.postMessage(message);
    const beats = (): number => Atomics.load(new Int32Array(pulse), BEATS);
    const last = new Promise((resolve) => {
      worker.onmessage = ({ data }: MessageEvent<FromCpu<string>>) => {
        if (data.id === 1000) resolve(null);
      };
    });
    tell({ kind: "start", pulse, settings: null });
    for (let id = 1; id < 1000; id++) tell({ kind: "work", id, asked: 0 });
    tell({ kind: "work", id: 1000, asked: 5 * BEAT_MS });
    await last;
    // Once at the start, then within the half second of the last task, or a little more.
    expect(beats()).toBeGreaterThanOrEqual(4);
    expect(beats()).toBeLessThan(100);
  } finally {
    worker.terminate();
  }
});
