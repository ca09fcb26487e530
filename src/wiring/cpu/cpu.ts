import { FORM } from "../process/form.ts";
import type { Clock } from "../../core/time/clock.ts";
import {
  BEATS,
  type FromCpu,
  type Packed,
  type PackedFromCpu,
  PULSE_OCTETS,
  TURNED_TO,
  type ToCpu,
} from "./serve.ts";

/** Additional stall time for each MiB of the largest task, which takes 20 to 30 ms on an idle machine. */
const STALL_MS_PER_MIB = 100;
const MIB = 1024 * 1024;
/** Time until the first heartbeat, while the worker thread loads its code, milliseconds. */
export const START_MS = 30_000;
/** Longest time of a task, milliseconds. After that its result counts as lost. */
export const MAX_TASK_MS = 60_000;
/** Interval at which a busy worker thread is checked, milliseconds. */
const WATCH_MS = 250;

/** A task for a worker thread, and the callbacks of its caller. */
export interface Task<Asked, Found> {
  id: number;
  asked: Asked;
  /** Size of the task, for the limits. */
  octets: number;
  /** Time at which a worker thread got the task, milliseconds. */
  since: number;
  done(found: Found): void;
  failed(error: Error): void;
}

/** The reason why a worker thread ended: a task stalled or crashed it, or it could not work at all. */
export type Loss = { kind: "held"; suspect: number } | { kind: "broken"; error: Error };

export interface CpuEvents<Asked, Found> {
  /** Called when a task succeeded or failed. */
  finished(cpu: Cpu<Asked, Found>, task: Task<Asked, Found>): void;
  /** Called when the worker thread ended, with its unfinished tasks. */
  lost(cpu: Cpu<Asked, Found>, tasks: Task<Asked, Found>[], loss: Loss): void;
}

export interface CpuOptions<Asked, Found> {
  /** Starts a worker thread. */
  open: () => Worker;
  /** The first message to a worker thread, which must be cloneable. */
  settings: unknown;
  /** Time without a heartbeat after which the worker thread counts as stalled by its current task, milliseconds. */
  stallMs: number;
  /** Returns the task to send, with large parts in shared memory, so that it can be sent again. */
  sent: (asked: Asked) => Asked;
  /** Returns the result that a worker thread has packed. Left out: its worker threads pack none. */
  unpacked?: (packed: Packed) => Found;
}

/**
 * Starts a worker thread. It does not keep the process alive, and has the small heap.
 * @param entry the name of its file in this folder
 */
export function openWorker(entry: "inspect-worker.ts" | "render-worker.ts" | "write-worker.ts"): Worker {
  return new Worker(new URL(FORM.worker(entry), import.meta.url).href, { smol: true, ref: false });
}

/** Returns a thrown value as an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** One worker thread, and the watch over it. */
export class Cpu<Asked, Found> {
  readonly #clock: Clock;
  readonly #events: CpuEvents<Asked, Found>;
  readonly #options: CpuOptions<Asked, Found>;
  readonly #worker: Worker;
  readonly #pulse = new SharedArrayBuffer(PULSE_OCTETS);
  readonly #tasks = new Map<number, Task<Asked, Found>>();
  #ended = false;
  #beats = 0;
  #beatAt = 0;
  #lookedAt = 0;
  #cancelWatch: () => void = () => undefined;

  constructor(clock: Clock, options: CpuOptions<Asked, Found>, events: CpuEvents<Asked, Found>) {
    this.#clock = clock;
    this.#events = events;
    this.#options = options;
    this.#worker = options.open();
    this.#worker.onmessage = ({ data }: MessageEvent<FromCpu<Found> | PackedFromCpu>) =>
      this.#said("isPacked" in data ? this.#unpacked(data) : data);
    this.#worker.onerror = ({ message }) => this.#fell(message);
    this.#worker.addEventListener("close", () => this.#fell("the thread has ended"));
    this.#tell({ kind: "start", pulse: this.#pulse, settings: options.settings });
  }

  /** Number of running tasks. */
  get inHand(): number {
    return this.#tasks.size;
  }

  take(task: Task<Asked, Found>): void {
    const now = this.#clock.elapsed();
    task.since = now;
    this.#tasks.set(task.id, task);
    if (this.#tasks.size === 1) this.#watch(now);
    try {
      this.#tell({ kind: "work", id: task.id, asked: this.#options.sent(task.asked) });
    } catch (error) {
      // A value that is nested too deep cannot be sent.
      this.#over(task, () => task.failed(asError(error)));
    }
  }

  /** Ends the worker thread, whatever it is doing. */
  close(): Task<Asked, Found>[] {
    this.#ended = true;
    this.#cancelWatch();
    this.#worker.terminate();
    const tasks = [...this.#tasks.values()];
    this.#tasks.clear();
    return tasks;
  }

  #tell(message: ToCpu<unknown, Asked>): void {
    this.#worker.postMessage(message);
  }

  #unpacked({ id, ...packed }: PackedFromCpu): FromCpu<Found> {
    const { unpacked } = this.#options;
    return unpacked === undefined ? { id, error: "an answer is packed" } : { id, found: unpacked(packed) };
  }

  #said(said: FromCpu<Found>): void {
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
    const now = this.#clock.elapsed();
    const pulse = new Int32Array(this.#pulse);
    const beats = Atomics.load(pulse, BEATS);
    if (beats !== this.#beats) this.#beatAt = now;
    this.#beats = beats;
    // If we missed a look, the whole process stood still. Such a pause does not count as silence of the worker
    // thread.
    const missed = Math.max(0, now - this.#lookedAt - WATCH_MS);
    this.#lookedAt = now;
    this.#beatAt = Math.min(this.#beatAt + missed, now);
    for (const task of this.#tasks.values()) task.since = Math.min(task.since + missed, now);
    const silence = now - this.#beatAt;
    const late = [...this.#tasks.values()].find(({ since }) => now - since > MAX_TASK_MS);
    if (beats === 0 && silence > START_MS)
      this.#lose({ kind: "broken", error: new Error("a thread does not start") });
    else if (beats > 0 && silence > this.#stallLimitMs())
      this.#lose({ kind: "held", suspect: Atomics.load(pulse, TURNED_TO) });
    else if (late !== undefined) this.#lose({ kind: "held", suspect: late.id });
    else this.#cancelWatch = this.#clock.after(WATCH_MS, () => this.#look());
  }

  #stallLimitMs(): number {
    const sizes = [...this.#tasks.values()].map(({ octets }) => octets);
    return this.#options.stallMs + (Math.max(0, ...sizes) / MIB) * STALL_MS_PER_MIB;
  }

  /** Blames an uncaught error on a task if the worker thread has begun to work. */
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
