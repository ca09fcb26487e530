import { availableParallelism } from "node:os";
import type { Clock } from "../../core/time/clock.ts";
import { Fifo } from "../../core/collections.ts";
import { PoolClosedError } from "../../flows/mime/rendering-tasks.ts";
import { asError, type Loss, Cpu, type Task, type CpuOptions } from "./cpu.ts";

/**
 * Maximum number of tasks on all worker threads at a time. Tasks for received messages mostly wait for DNS.
 */
export const MAX_TASKS_IN_HAND = 256;
/** Maximum bytes of all large tasks at a time. A larger task runs without other large ones. */
export const MAX_OCTETS_IN_HAND = 32 * 1024 * 1024;
/** Size above which a task is large. All small tasks together have at most half of those bytes. */
export const LARGE_TASK_OCTETS = 64 * 1024;
/** Number of tasks per worker thread at which another thread is started. */
const BUSY_TASKS = 16;
/** Idle time after which the worker threads end to free their memory, milliseconds. */
export const IDLE_MS = 300_000;

export interface PoolOptions<Asked, Found> extends CpuOptions<Asked, Found> {
  /** Maximum number of worker threads. */
  cpus: number;
  /** Limits of waiting tasks and their bytes. Further tasks are refused. */
  waiting: { tasks: number; octets: number };
  /** Returns the result of a task that stalled its worker thread twice, the second time alone. Throws if there is none. */
  givenUp: (asked: Asked) => Found;
}

/**
 * Runs tasks on worker threads, so that the main thread stays free for SMTP and HTTP. A stalled worker thread is ended, and its other tasks
 * start again. The task that stalled it runs once more alone, because the machine may just be busy. If it stalls again, it is
 * given up.
 */
export class CpuPool<Asked, Found> {
  readonly #clock: Clock;
  readonly #options: PoolOptions<Asked, Found>;
  readonly #cpus = new Set<Cpu<Asked, Found>>();
  /** Small tasks overtake a large one that waits for room, because reading large ones may take seconds. */
  readonly #small = new Fifo<Task<Asked, Found>>();
  readonly #large = new Fifo<Task<Asked, Found>>();
  readonly #suspects = new Fifo<Task<Asked, Found>>();
  #solo: Cpu<Asked, Found> | null = null;
  /** The next large task, which is out of its queue and not started. */
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

  /** Runs a task. Resolves with null if too many wait. Rejects after an internal failure, or with `PoolClosedError`. */
  run(asked: Asked, octets: number): Promise<Found | null> {
    if (this.#closed) return Promise.reject(new PoolClosedError("the threads are closed"));
    const { waiting } = this.#options;
    if (this.#small.size + this.#large.size >= waiting.tasks || this.#octetsWaiting > waiting.octets)
      return Promise.resolve(null);
    const { promise, resolve, reject } = Promise.withResolvers<Found>();
    // The shared memory holds 32-bit numbers.
    this.#lastId = (this.#lastId % 0x7fffffff) + 1;
    this.#wait({ id: this.#lastId, asked, octets, since: 0, done: resolve, failed: reject });
    this.#begin();
    return promise;
  }

  /** Ends all worker threads and rejects their tasks with `PoolClosedError`. */
  close(): void {
    this.#closed = true;
    this.#cancelIdle();
    const left = [...this.#cpus, ...(this.#solo === null ? [] : [this.#solo])].flatMap((cpu) => cpu.close());
    for (const tasks of [left, ...[this.#suspects, this.#large, this.#small].map(drain)])
      for (const task of tasks) this.#stopped(task);
    if (this.#next !== undefined) this.#stopped(this.#next);
    this.#cpus.clear();
    this.#solo = null;
  }

  #stopped(task: Task<Asked, Found>): void {
    task.failed(new PoolClosedError("the threads were closed"));
  }

  #begin(): void {
    this.#cancelIdle();
    for (let task = this.#startable(); task !== undefined; task = this.#startable()) {
      this.#tasks++;
      if (isLarge(task)) this.#octets += task.octets;
      this.#give(task, () => this.#idlest());
    }
    if (this.#solo !== null) return;
    const suspect = this.#suspects.take();
    if (suspect === undefined) return;
    this.#give(suspect, () => {
      this.#solo = this.#open();
      return this.#solo;
    });
    // If it failed at once, there is room for others.
    if (this.#solo === null) this.#begin();
  }

  /** Gives a task to a worker thread. If no worker thread can be started, only this task fails. */
  #give(task: Task<Asked, Found>, cpuFor: () => Cpu<Asked, Found>): void {
    let cpu: Cpu<Asked, Found>;
    try {
      cpu = cpuFor();
    } catch (error) {
      this.#fail(task, asError(error));
      return;
    }
    cpu.take(task);
  }

  /** Takes the next task that has room. Large ones come first, because few run at a time. */
  #startable(): Task<Asked, Found> | undefined {
    if (this.#tasks >= MAX_TASKS_IN_HAND) return undefined;
    this.#next ??= this.#taken(this.#large);
    const next = this.#next;
    if (next === undefined || (this.#octets > 0 && this.#octets + next.octets > MAX_OCTETS_IN_HAND))
      return this.#taken(this.#small);
    this.#next = undefined;
    return next;
  }

  /** The worker thread with the fewest tasks, or a new one. */
  #idlest(): Cpu<Asked, Found> {
    const [idlest] = [...this.#cpus].sort((a, b) => a.inHand - b.inHand);
    if (idlest !== undefined && (idlest.inHand < BUSY_TASKS || this.#cpus.size >= this.#options.cpus))
      return idlest;
    const cpu = this.#open();
    this.#cpus.add(cpu);
    return cpu;
  }

  #open(): Cpu<Asked, Found> {
    return new Cpu<Asked, Found>(this.#clock, this.#options, {
      finished: (cpu, task) => this.#finished(cpu, task),
      lost: (cpu, tasks, loss) => this.#lost(cpu, tasks, loss),
    });
  }

  #finished(cpu: Cpu<Asked, Found>, task: Task<Asked, Found>): void {
    this.#release(task);
    if (cpu === this.#solo) this.#endSolo();
    this.#begin();
    this.#restLater();
  }

  #release(task: Task<Asked, Found>): void {
    this.#tasks--;
    if (isLarge(task)) this.#octets -= task.octets;
  }

  #endSolo(): void {
    this.#solo?.close();
    this.#solo = null;
  }

  /** Starts the idle timer. Cancels the one before, because a timer without a handle would end busy worker threads. */
  #restLater(): void {
    this.#cancelIdle();
    if (this.#tasks === 0) this.#cancelIdle = this.#clock.after(IDLE_MS, () => this.#rest());
  }

  #rest(): void {
    for (const cpu of this.#cpus) cpu.close();
    this.#cpus.clear();
  }

  #lost(cpu: Cpu<Asked, Found>, tasks: readonly Task<Asked, Found>[], loss: Loss): void {
    const alone = cpu === this.#solo;
    this.#cpus.delete(cpu);
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
    (isLarge(task) ? this.#large : this.#small).add(task);
    this.#octetsWaiting += task.octets;
  }

  #taken(row: Fifo<Task<Asked, Found>>): Task<Asked, Found> | undefined {
    const task = row.take();
    this.#octetsWaiting -= task?.octets ?? 0;
    return task;
  }
}

function isLarge({ octets }: { octets: number }): boolean {
  return octets > LARGE_TASK_OCTETS;
}

function drain<Item>(tasks: Fifo<Item>): Item[] {
  const all: Item[] = [];
  for (let task = tasks.take(); task !== undefined; task = tasks.take()) all.push(task);
  return all;
}

/** Maximum number of worker threads of a pool. They leave half of the processors for other work. */
const MAX_THREADS = 4;

/** Returns the number of worker threads of a pool on a machine with that many processors. */
export function cpusFor(processors = availableParallelism()): number {
  return Math.max(1, Math.min(MAX_THREADS, Math.floor(processors / 2)));
}
