import type { Clock } from "../core/clock.ts";
import {
  type AnyAsked,
  type Asked,
  type Found,
  type Inspect,
  type ReadingKind,
  unread,
} from "../flows/readings.ts";
import { Fifo } from "../flows/dispatch/turns.ts";
import type { Log } from "../log.ts";
import { InspectorThread, type ThreadSettings, type Loss, type Task } from "./inspector-thread.ts";

/** Mails in all threads at a time: most of them wait for name servers. */
export const MAX_MAILS_IN_HAND = 256;
/** Octets of them. A larger mail is inspected alone. */
export const MAX_OCTETS_IN_HAND = 32 * 1024 * 1024;
/** Mails that wait, and their octets; what comes beyond is turned away for now. */
export const MAX_MAILS_WAITING = 2000;
export const MAX_OCTETS_WAITING = 128 * 1024 * 1024;
/** Mails in hand of each thread from which on another one is started. */
const BUSY_MAILS = 16;
/** Time without mail after which a thread is ended, for its memory's sake. */
export const IDLE_MS = 300_000;

export interface InspectorDeps {
  clock: Clock;
  log: Log;
}

export interface InspectorOptions extends ThreadSettings {
  /** Threads at most. */
  threads: number;
}

/**
 * Inspects mails in threads of their own, so that the one that serves SMTP and HTTP goes on. A thread that a mail holds
 * is ended. Its other mails are inspected anew, and that one once more by itself, for a busy machine may be the reason;
 * held again, it is taken with what its header tells.
 */
export class Inspector {
  readonly #deps: InspectorDeps;
  readonly #options: InspectorOptions;
  readonly #threads = new Set<InspectorThread>();
  readonly #waiting = new Fifo<Task>();
  readonly #suspects = new Fifo<Task>();
  #solo: InspectorThread | null = null;
  /** The next of those waiting, taken out of the row and not begun. */
  #next: Task | undefined;
  #lastId = 0;
  #mails = 0;
  #octets = 0;
  #octetsWaiting = 0;
  #closed = false;
  #cancelIdle: () => void = () => undefined;

  constructor(deps: InspectorDeps, options: InspectorOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  readonly inspect: Inspect = <Kind extends ReadingKind>(asked: Asked<Kind>) => {
    if (this.#closed) return Promise.reject(new Error("the inspector is closed"));
    if (this.#waiting.size >= MAX_MAILS_WAITING || this.#octetsWaiting > MAX_OCTETS_WAITING)
      return Promise.resolve(null);
    const { promise, resolve, reject } = Promise.withResolvers<Found<Kind>>();
    // The memory that both threads see holds 32-bit numbers.
    this.#lastId = (this.#lastId % 0x7fffffff) + 1;
    // What a thread finds is of the kind that it was asked for: messages between threads carry no types.
    const done = (found: Found<ReadingKind>): void => resolve(found as Found<Kind>);
    this.#wait({ id: this.#lastId, asked: asked as AnyAsked, since: 0, done, failed: reject });
    this.#begin();
    return promise;
  };

  /** Ends all threads; what they have in hand is rejected. */
  close(): void {
    this.#closed = true;
    this.#cancelIdle();
    const left = [...this.#threads, ...(this.#solo === null ? [] : [this.#solo])].flatMap((thread) =>
      thread.close(),
    );
    for (const task of [...left, ...drain(this.#suspects), ...drain(this.#waiting)]) this.#stopped(task);
    if (this.#next !== undefined) this.#stopped(this.#next);
    this.#threads.clear();
    this.#solo = null;
  }

  #stopped(task: Task): void {
    task.failed(new Error("the inspector was closed"));
  }

  #begin(): void {
    this.#cancelIdle();
    for (;;) {
      this.#next ??= this.#taken();
      if (this.#next === undefined || !this.#hasRoom(this.#next)) break;
      const task = this.#next;
      this.#next = undefined;
      this.#mails++;
      this.#octets += task.asked.raw.length;
      this.#idlest().take(task);
    }
    if (this.#solo !== null) return;
    const suspect = this.#suspects.take();
    if (suspect === undefined) return;
    this.#solo = this.#open();
    this.#solo.take(suspect);
  }

  #hasRoom({ asked: { raw } }: Task): boolean {
    if (this.#mails === 0) return true;
    return this.#mails < MAX_MAILS_IN_HAND && this.#octets + raw.length <= MAX_OCTETS_IN_HAND;
  }

  /** The thread with the fewest mails, or a new one. */
  #idlest(): InspectorThread {
    const [idlest] = [...this.#threads].sort((a, b) => a.inHand - b.inHand);
    if (idlest !== undefined && (idlest.inHand < BUSY_MAILS || this.#threads.size >= this.#options.threads))
      return idlest;
    const thread = this.#open();
    this.#threads.add(thread);
    return thread;
  }

  #open(): InspectorThread {
    return new InspectorThread(this.#deps.clock, this.#options, {
      finished: (thread, task) => this.#finished(thread, task),
      lost: (thread, tasks, loss) => this.#lost(thread, tasks, loss),
    });
  }

  #finished(thread: InspectorThread, task: Task): void {
    this.#release(task);
    if (thread === this.#solo) this.#endSolo();
    this.#begin();
    if (this.#mails === 0) this.#cancelIdle = this.#deps.clock.after(IDLE_MS, () => this.#rest());
  }

  #release({ asked }: Task): void {
    this.#mails--;
    this.#octets -= asked.raw.length;
  }

  #endSolo(): void {
    this.#solo?.close();
    this.#solo = null;
  }

  #rest(): void {
    for (const thread of this.#threads) thread.close();
    this.#threads.clear();
  }

  #lost(thread: InspectorThread, tasks: readonly Task[], loss: Loss): void {
    const alone = thread === this.#solo;
    this.#threads.delete(thread);
    if (alone) this.#solo = null;
    for (const task of tasks) {
      if (loss.kind === "broken") this.#fail(task, loss.error);
      else if (alone) this.#giveUp(task);
      else if (task.id === loss.suspect || !tasks.some(({ id }) => id === loss.suspect))
        this.#suspects.add(task);
      else this.#again(task);
    }
    this.#begin();
  }

  #fail(task: Task, error: Error): void {
    this.#release(task);
    task.failed(error);
  }

  /** The mail is kept all the same: a sender must not lose it, nor bring it again for ever. */
  #giveUp(task: Task): void {
    this.#release(task);
    const { kind, raw } = task.asked;
    this.#deps.log.warning("a mail could not be read in time", { kind, bytes: raw.length });
    try {
      task.done(unread(this.#options.host, task.asked));
    } catch (error) {
      task.failed(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #again(task: Task): void {
    this.#release(task);
    this.#wait(task);
  }

  #wait(task: Task): void {
    this.#waiting.add(task);
    this.#octetsWaiting += task.asked.raw.length;
  }

  #taken(): Task | undefined {
    const task = this.#waiting.take();
    this.#octetsWaiting -= task?.asked.raw.length ?? 0;
    return task;
  }
}

function drain(tasks: Fifo<Task>): Task[] {
  const all: Task[] = [];
  for (let task = tasks.take(); task !== undefined; task = tasks.take()) all.push(task);
  return all;
}

/** Threads at most, so that half of the processors are left for everything else. */
const MAX_THREADS = 4;

/** How many threads inspect on a machine with so many processors. */
export function inspectingThreads(processors: number): number {
  return Math.max(1, Math.min(MAX_THREADS, Math.floor(processors / 2)));
}
