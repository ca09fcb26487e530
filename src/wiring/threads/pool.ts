import type { Clock } from "../../core/clock.ts";
import { Fifo } from "../../core/fifo.ts";
import { Stopping } from "../../flows/renderings.ts";
import { asError, type Loss, PoolThread, type Task, type ThreadOptions } from "./thread.ts";

/** Tasks in all threads at a time: of mails that came in, most wait for name servers. */
export const MAX_TASKS_IN_HAND = 256;
/** Octets of them. A larger one is worked on alone. */
export const MAX_OCTETS_IN_HAND = 32 * 1024 * 1024;
/** Tasks in hand of each thread from which on another one is started. */
const BUSY_TASKS = 16;
/** Time without work after which a thread is ended, for its memory's sake. */
export const IDLE_MS = 300_000;

export interface PoolOptions<Asked, Found> extends ThreadOptions<Asked> {
  /** Threads at most. */
  threads: number;
  /** Tasks that wait, and their octets; what comes beyond is turned away for now. */
  waiting: { tasks: number; octets: number };
  /** What is said of a task that has held its thread twice, the second time by itself. Throws where nothing can be. */
  givenUp: (asked: Asked) => Found;
}

/**
 * Does work in threads of their own, so that the one that serves SMTP and HTTP goes on. A thread that a task holds is
 * ended. Its other tasks are begun anew, and that one once more by itself, for a busy machine may be the reason; held
 * again, it is given up.
 */
export class ThreadPool<Asked, Found> {
  readonly #clock: Clock;
  readonly #options: PoolOptions<Asked, Found>;
  readonly #threads = new Set<PoolThread<Asked, Found>>();
  readonly #waiting = new Fifo<Task<Asked, Found>>();
  readonly #suspects = new Fifo<Task<Asked, Found>>();
  #solo: PoolThread<Asked, Found> | null = null;
  /** The next of those waiting, taken out of the row and not begun. */
  #next: Task<Asked, Found> | undefined;
  #lastId = 0;
  #tasks = 0;
  #octets = 0;
  #octetsWaiting = 0;
  #closed = false;
  #cancelIdle: () => void = () => undefined;

  constructor(clock: Clock, options: PoolOptions<Asked, Found>) {
    this.#clock = clock;
    this.#options = options;
  }

  /** Does a task of so many octets. Null where too many wait already. A rejection is trouble of ours, or `Stopping`. */
  run(asked: Asked, octets: number): Promise<Found | null> {
    if (this.#closed) return Promise.reject(new Stopping("the threads are closed"));
    const { waiting } = this.#options;
    if (this.#waiting.size >= waiting.tasks || this.#octetsWaiting > waiting.octets)
      return Promise.resolve(null);
    const { promise, resolve, reject } = Promise.withResolvers<Found>();
    // The memory that both threads see holds 32-bit numbers.
    this.#lastId = (this.#lastId % 0x7fffffff) + 1;
    this.#wait({ id: this.#lastId, asked, octets, since: 0, done: resolve, failed: reject });
    this.#begin();
    return promise;
  }

  /** Ends all threads; what they have in hand is rejected by `Stopping`. */
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

  #stopped(task: Task<Asked, Found>): void {
    task.failed(new Stopping("the threads were closed"));
  }

  #begin(): void {
    this.#cancelIdle();
    for (;;) {
      this.#next ??= this.#taken();
      if (this.#next === undefined || !this.#hasRoom(this.#next)) break;
      const task = this.#next;
      this.#next = undefined;
      this.#tasks++;
      this.#octets += task.octets;
      this.#give(task, () => this.#idlest());
    }
    if (this.#solo !== null) return;
    const suspect = this.#suspects.take();
    if (suspect === undefined) return;
    this.#give(suspect, () => {
      this.#solo = this.#open();
      return this.#solo;
    });
    // It has left room where it failed at once.
    if (this.#solo === null) this.#begin();
  }

  /** Where the system has no further thread, the task has failed and takes no room: what comes later may find one. */
  #give(task: Task<Asked, Found>, threadFor: () => PoolThread<Asked, Found>): void {
    let thread: PoolThread<Asked, Found>;
    try {
      thread = threadFor();
    } catch (error) {
      this.#fail(task, asError(error));
      return;
    }
    thread.take(task);
  }

  #hasRoom({ octets }: Task<Asked, Found>): boolean {
    if (this.#tasks === 0) return true;
    return this.#tasks < MAX_TASKS_IN_HAND && this.#octets + octets <= MAX_OCTETS_IN_HAND;
  }

  /** The thread with the fewest tasks, or a new one. */
  #idlest(): PoolThread<Asked, Found> {
    const [idlest] = [...this.#threads].sort((a, b) => a.inHand - b.inHand);
    if (idlest !== undefined && (idlest.inHand < BUSY_TASKS || this.#threads.size >= this.#options.threads))
      return idlest;
    const thread = this.#open();
    this.#threads.add(thread);
    return thread;
  }

  #open(): PoolThread<Asked, Found> {
    return new PoolThread<Asked, Found>(this.#clock, this.#options, {
      finished: (thread, task) => this.#finished(thread, task),
      lost: (thread, tasks, loss) => this.#lost(thread, tasks, loss),
    });
  }

  #finished(thread: PoolThread<Asked, Found>, task: Task<Asked, Found>): void {
    this.#release(task);
    if (thread === this.#solo) this.#endSolo();
    this.#begin();
    this.#restLater();
  }

  #release({ octets }: Task<Asked, Found>): void {
    this.#tasks--;
    this.#octets -= octets;
  }

  #endSolo(): void {
    this.#solo?.close();
    this.#solo = null;
  }

  /** What is begun behind a task may end at once and come here first: a timer that nobody can cancel would end threads at work. */
  #restLater(): void {
    this.#cancelIdle();
    if (this.#tasks === 0) this.#cancelIdle = this.#clock.after(IDLE_MS, () => this.#rest());
  }

  #rest(): void {
    for (const thread of this.#threads) thread.close();
    this.#threads.clear();
  }

  #lost(thread: PoolThread<Asked, Found>, tasks: readonly Task<Asked, Found>[], loss: Loss): void {
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
    this.#restLater();
  }

  #fail(task: Task<Asked, Found>, error: Error): void {
    this.#release(task);
    task.failed(error);
  }

  #giveUp(task: Task<Asked, Found>): void {
    this.#release(task);
    try {
      task.done(this.#options.givenUp(task.asked));
    } catch (error) {
      task.failed(asError(error));
    }
  }

  #again(task: Task<Asked, Found>): void {
    this.#release(task);
    this.#wait(task);
  }

  #wait(task: Task<Asked, Found>): void {
    this.#waiting.add(task);
    this.#octetsWaiting += task.octets;
  }

  #taken(): Task<Asked, Found> | undefined {
    const task = this.#waiting.take();
    this.#octetsWaiting -= task?.octets ?? 0;
    return task;
  }
}

function drain<Item>(tasks: Fifo<Item>): Item[] {
  const all: Item[] = [];
  for (let task = tasks.take(); task !== undefined; task = tasks.take()) all.push(task);
  return all;
}

/** Threads of a kind at most: one that is busy leaves half of the processors for everything else. */
const MAX_THREADS = 4;

/** How many threads of a kind there may be on a machine with so many processors. */
export function threadsFor(processors: number): number {
  return Math.max(1, Math.min(MAX_THREADS, Math.floor(processors / 2)));
}
