import type { Clock } from "../core/clock.ts";
import type { AnyAsked, Found, ReadingKind } from "../flows/readings.ts";
import { BEATS, type FromWorker, PULSE_OCTETS, TURNED_TO, type ToWorker } from "./inspect-protocol.ts";

/** Time without a beat after which a thread is taken to be held by the mail that it was turned to last. */
export const STALL_MS = 2_000;
/** The same for each MiB of the largest mail in hand, which takes 20 to 30 ms on a machine with nothing else to do. */
const STALL_MS_PER_MIB = 100;
const MIB = 1024 * 1024;
/** Time that a thread has for its first beat: it loads its code. */
export const START_MS = 30_000;
/** Time that a mail may take in all; longer means that its end was lost. */
export const MAX_INSPECTION_MS = 60_000;
/** Time between two looks at a thread that has mail in hand. */
const WATCH_MS = 250;

/** A mail to read, and who waits for it. */
export interface Task {
  id: number;
  asked: AnyAsked;
  /** Since when a thread has it; milliseconds. */
  since: number;
  done(found: Found<ReadingKind>): void;
  failed(error: Error): void;
}

/** Why a thread was given up: a mail held or broke it, or it could not do any work at all. */
export type Loss = { kind: "held"; suspect: number } | { kind: "broken"; error: Error };

export interface ThreadEvents {
  /** A mail is done, one way or the other. */
  finished(thread: InspectorThread, task: Task): void;
  /** The thread has ended; these were in hand. */
  lost(thread: InspectorThread, tasks: Task[], loss: Loss): void;
}

export interface ThreadSettings {
  /** Our name in Authentication-Results. */
  host: string;
  /** As in DNS_SERVERS. */
  dnsServers: readonly string[];
  /** Starts a thread. */
  open: () => Worker;
}

/** Starts a thread that inspects mails. It does not keep the process alive, and has the small heap. */
export function openWorker(): Worker {
  // All code of a compiled binary has the binary's own address; further entries lie below by their path in the tree.
  const path = import.meta.path.startsWith("/$bunfs/")
    ? "./src/wiring/inspect-worker.ts"
    : "./inspect-worker.ts";
  return new Worker(new URL(path, import.meta.url).href, { smol: true, ref: false });
}

/** One thread that inspects mails, and the watch over it. */
export class InspectorThread {
  readonly #clock: Clock;
  readonly #events: ThreadEvents;
  readonly #worker: Worker;
  readonly #pulse = new SharedArrayBuffer(PULSE_OCTETS);
  readonly #tasks = new Map<number, Task>();
  #ended = false;
  #beats = 0;
  #beatAt = 0;
  #cancelWatch: () => void = () => undefined;

  constructor(clock: Clock, settings: ThreadSettings, events: ThreadEvents) {
    const { host, dnsServers } = settings;
    this.#clock = clock;
    this.#events = events;
    this.#worker = settings.open();
    this.#worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.#said(data);
    this.#worker.onerror = ({ message }) => this.#fell(message);
    this.#worker.addEventListener("close", () => this.#fell("the thread has ended"));
    this.#tell({ kind: "start", pulse: this.#pulse, host, dnsServers });
  }

  /** Mails in hand. */
  get inHand(): number {
    return this.#tasks.size;
  }

  take(task: Task): void {
    const now = this.#clock.now();
    task.since = now;
    this.#tasks.set(task.id, task);
    if (this.#tasks.size === 1) this.#watch(now);
    this.#tell({ kind: "read", id: task.id, asked: { ...task.asked, raw: shared(task.asked.raw) } });
  }

  /** Ends the thread, whatever it is at. */
  close(): Task[] {
    this.#ended = true;
    this.#cancelWatch();
    this.#worker.terminate();
    const tasks = [...this.#tasks.values()];
    this.#tasks.clear();
    return tasks;
  }

  #tell(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #said(said: FromWorker): void {
    const task = this.#tasks.get(said.id);
    if (task === undefined) return;
    this.#tasks.delete(said.id);
    if (this.#tasks.size === 0) this.#cancelWatch();
    if (said.found === undefined) task.failed(new Error(said.error));
    else task.done(said.found);
    this.#events.finished(this, task);
  }

  #watch(now: number): void {
    this.#beatAt = now;
    this.#cancelWatch();
    this.#cancelWatch = this.#clock.after(WATCH_MS, () => this.#look());
  }

  #look(): void {
    const now = this.#clock.now();
    const pulse = new Int32Array(this.#pulse);
    const beats = Atomics.load(pulse, BEATS);
    if (beats !== this.#beats) this.#beatAt = now;
    this.#beats = beats;
    const silence = now - this.#beatAt;
    const late = [...this.#tasks.values()].find(({ since }) => now - since > MAX_INSPECTION_MS);
    if (beats === 0 && silence > START_MS)
      this.#lose({ kind: "broken", error: new Error("the inspecting thread does not start") });
    else if (beats > 0 && silence > this.#patience())
      this.#lose({ kind: "held", suspect: Atomics.load(pulse, TURNED_TO) });
    else if (late !== undefined) this.#lose({ kind: "held", suspect: late.id });
    else this.#cancelWatch = this.#clock.after(WATCH_MS, () => this.#look());
  }

  #patience(): number {
    const sizes = [...this.#tasks.values()].map(({ asked }) => asked.raw.length);
    return STALL_MS + (Math.max(0, ...sizes) / MIB) * STALL_MS_PER_MIB;
  }

  /** An error that nobody caught is a mail's doing, too, once the thread has begun to work. */
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
function shared(raw: Uint8Array): Uint8Array {
  if (raw.buffer instanceof SharedArrayBuffer) return raw;
  const bytes = new Uint8Array(new SharedArrayBuffer(raw.length));
  bytes.set(raw);
  return bytes;
}
