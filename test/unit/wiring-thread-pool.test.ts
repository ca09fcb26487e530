import { expect, test } from "bun:test";
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

/** A pool of threads that `open` makes; "unsendable" cannot be sent. */
function scene(open: (nth: number) => Thread = () => new Thread()) {
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
    waiting: { tasks: Number.POSITIVE_INFINITY, octets: Number.POSITIVE_INFINITY },
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

test("at the end all that is left is rejected: in hand, alone, to be tried alone, next and waiting", async () => {
  const { clock, pool, threads } = scene();
  const held = ["first", "second"].map(() => pool.run("large", MAX_OCTETS_IN_HAND));
  // The first thread beats no more, nor does the one that takes the second.
  threads[0]?.beat();
  clock.advance(2 * STALL_MS);
  threads.at(-1)?.beat();
  expect(threads.length).toBe(3);
  const left = [...held, ...["next", "waiting"].map((name) => pool.run(name, MAX_OCTETS_IN_HAND))];
  pool.close();
  for (const task of left) await expect(task).rejects.toThrow(Stopping);
  expect(threads.map(({ ended }) => ended)).toEqual(threads.map(() => true));
  expect(clock.pending()).toBe(0);
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
