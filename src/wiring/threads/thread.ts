import type { Clock } from "../../core/clock.ts";
import { BEATS, type FromThread, PULSE_OCTETS, TURNED_TO, type ToThread } from "./protocol.ts";

/** Time without a beat for each MiB of the largest task in hand, which takes 20 to 30 ms on a machine with nothing else to do. */
const STALL_MS_PER_MIB = 100;
const MIB = 1024 * 1024;
/** Time that a thread has for its first beat: it loads its code. */
export const START_MS = 30_000;
/** Time that a task may take in all; longer means that its end was lost. */
export const MAX_TASK_MS = 60_000;
/** Time between two looks at a thread that has work in hand. */
const WATCH_MS = 250;

/** Something to do in a thread, and who waits for it. */
export interface Task<Asked, Found> {
  id: number;
  asked: Asked;
  /** Of it, for the bounds. */
  octets: number;
  /** Since when a thread has it; milliseconds. */
  since: number;
  done(found: Found): void;
  failed(error: Error): void;
}

/** Why a thread was given up: a task held or broke it, or it could not do any work at all. */
export type Loss = { kind: "held"; suspect: number } | { kind: "broken"; error: Error };

export interface ThreadEvents<Asked, Found> {
  /** A task is done, one way or the other. */
  finished(thread: PoolThread<Asked, Found>, task: Task<Asked, Found>): void;
  /** The thread has ended; these were in hand. */
  lost(thread: PoolThread<Asked, Found>, tasks: Task<Asked, Found>[], loss: Loss): void;
}

export interface ThreadOptions<Asked> {
  /** Starts a thread. */
  open: () => Worker;
  /** What a thread is told first; it must be one that messages can carry. */
  settings: unknown;
  /** Time without a beat after which a thread is taken to be held by the task that it was turned to last. */
  stallMs: number;
  /** A task as it is sent: what is large of it lies in memory that both threads see, so that it may be sent again. */
  sent: (asked: Asked) => Asked;
}

/**
 * Starts a thread. It does not keep the process alive, and has the small heap.
 * @param entry its file's name in the folder above this one
 */
export function openWorker(entry: "inspect-worker.ts" | "render-worker.ts" | "write-worker.ts"): Worker {
  // All code of a compiled binary has the binary's own address; further entries lie below by their path in the tree.
  const path = import.meta.path.startsWith("/$bunfs/") ? `./src/wiring/${entry}` : `../${entry}`;
  return new Worker(new URL(path, import.meta.url).href, { smol: true, ref: false });
}

/** What was thrown, as an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** One thread, and the watch over it. */
export class PoolThread<Asked, Found> {
  readonly #clock: Clock;
  readonly #events: ThreadEvents<Asked, Found>;
  readonly #options: ThreadOptions<Asked>;
  readonly #worker: Worker;
  readonly #pulse = new SharedArrayBuffer(PULSE_OCTETS);
  readonly #tasks = new Map<number, Task<Asked, Found>>();
  #ended = false;
  #beats = 0;
  #beatAt = 0;
  #lookedAt = 0;
  #cancelWatch: () => void = () => undefined;

  constructor(clock: Clock, options: ThreadOptions<Asked>, events: ThreadEvents<Asked, Found>) {
    this.#clock = clock;
    this.#events = events;
    this.#options = options;
    this.#worker = options.open();
    this.#worker.onmessage = ({ data }: MessageEvent<FromThread<Found>>) => this.#said(data);
    this.#worker.onerror = ({ message }) => this.#fell(message);
    this.#worker.addEventListener("close", () => this.#fell("the thread has ended"));
    this.#tell({ kind: "start", pulse: this.#pulse, settings: options.settings });
  }

  /** Tasks in hand. */
  get inHand(): number {
    return this.#tasks.size;
  }

  take(task: Task<Asked, Found>): void {
    const now = this.#clock.now();
    task.since = now;
    this.#tasks.set(task.id, task);
    if (this.#tasks.size === 1) this.#watch(now);
    try {
      this.#tell({ kind: "work", id: task.id, asked: this.#options.sent(task.asked) });
    } catch (error) {
      // What lies too deep within itself cannot be sent.
      this.#over(task, () => task.failed(asError(error)));
    }
  }

  /** Ends the thread, whatever it is at. */
  close(): Task<Asked, Found>[] {
    this.#ended = true;
    this.#cancelWatch();
    this.#worker.terminate();
    const tasks = [...this.#tasks.values()];
    this.#tasks.clear();
    return tasks;
  }

  #tell(message: ToThread<unknown, Asked>): void {
    this.#worker.postMessage(message);
  }

  #said(said: FromThread<Found>): void {
    const task = this.#tasks.get(said.id);
    if (task === undefined) return;
    this.#over(task, () =>
      said.error === undefined ? task.done(said.found) : task.failed(new Error(said.error)),
    );
  }

  #over(task: Task<Asked, Found>, tell: () => void): void {
    this.#tasks.delete(task.id);
    if (this.#tasks.size === 0) this.#cancelWatch();
    tell();
    this.#events.finished(this, task);
  }

  #watch(now: number): void {
    this.#beatAt = now;
    this.#lookedAt = now;
    this.#cancelWatch();
    this.#cancelWatch = this.#clock.after(WATCH_MS, () => this.#look());
  }

  #look(): void {
    const now = this.#clock.now();
    const pulse = new Int32Array(this.#pulse);
    const beats = Atomics.load(pulse, BEATS);
    if (beats !== this.#beats) this.#beatAt = now;
    this.#beats = beats;
    // A time in which we did not look ourselves is nobody's silence: the whole process stood still, or the clock was put forward.
    const missed = Math.max(0, now - this.#lookedAt - WATCH_MS);
    this.#lookedAt = now;
    // Where the clock was put back times begin anew, rather than to last until it has come round again.
    this.#beatAt = Math.min(this.#beatAt + missed, now);
    for (const task of this.#tasks.values()) task.since = Math.min(task.since + missed, now);
    const silence = now - this.#beatAt;
    const late = [...this.#tasks.values()].find(({ since }) => now - since > MAX_TASK_MS);
    if (beats === 0 && silence > START_MS)
      this.#lose({ kind: "broken", error: new Error("a thread does not start") });
    else if (beats > 0 && silence > this.#patience())
      this.#lose({ kind: "held", suspect: Atomics.load(pulse, TURNED_TO) });
    else if (late !== undefined) this.#lose({ kind: "held", suspect: late.id });
    else this.#cancelWatch = this.#clock.after(WATCH_MS, () => this.#look());
  }

  #patience(): number {
    const sizes = [...this.#tasks.values()].map(({ octets }) => octets);
    return this.#options.stallMs + (Math.max(0, ...sizes) / MIB) * STALL_MS_PER_MIB;
  }

  /** An error that nobody caught is a task's doing, too, once the thread has begun to work. */
  #fell(message: string): void {
    if (this.#ended) return;
    const pulse = new Int32Array(this.#pulse);
    if (Atomics.load(pulse, BEATS) > 0) this.#lose({ kind: "held", suspect: Atomics.load(pulse, TURNED_TO) });
    else this.#lose({ kind: "broken", error: new Error(message) });
  }

  #lose(loss: Loss): void {
    this.#events.lost(this, this.close(), loss);
  }
}

/** The bytes in memory that both threads see: a copy of 25 MiB by message would hold this one for twice as long. */
export function shared(raw: Uint8Array): Uint8Array {
  if (raw.buffer instanceof SharedArrayBuffer) return raw;
  const bytes = new Uint8Array(new SharedArrayBuffer(raw.length));
  bytes.set(raw);
  return bytes;
}
