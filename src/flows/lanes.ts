import { log } from "../log.ts";
import type { Job } from "../queue/port.ts";
import { Fifo } from "./turns.ts";

export interface LaneLimits {
  /** Jobs of one lane in hand at a time. */
  perLane: number;
  /** Jobs of all lanes in hand at a time. */
  total: number;
  /** Jobs of one lane that may wait here, so that one that hangs does not fill the room of all. */
  waitingPerLane: number;
  /** Jobs of all lanes that may wait here. */
  waiting: number;
}

interface Lane {
  waiting: Fifo<Job>;
  running: number;
}

/**
 * Waiting jobs by what they share. Lanes that can run take turns, so one that hangs holds its own few places and delays
 * no other.
 */
export class Lanes {
  readonly #limits: LaneLimits;
  readonly #run: (job: Job) => Promise<void>;
  readonly #lanes = new Map<string, Lane>();
  /** Keys that wait or run here: a job offered again is the same job. */
  readonly #known = new Set<string>();
  /** Lanes that have both a job and a place, in the order of their turn. */
  readonly #ready: string[] = [];
  readonly #readySet = new Set<string>();
  #running = 0;
  #waiting = 0;
  #closed = false;
  #idle: (() => void)[] = [];

  constructor(limits: LaneLimits, run: (job: Job) => Promise<void>) {
    this.#limits = limits;
    this.#run = run;
  }

  /** Whether the job of that key waits or runs here. */
  has(key: string): boolean {
    return this.#known.has(key);
  }

  /**
   * Whether it could do with the job: it does not have it yet, and has room for it. What is hinted without room is let go
   * and hinted again, turn for turn, and a queue outside the process is kept busy with nothing else.
   */
  wants({ key, lane }: Job): boolean {
    if (this.#known.has(key) || this.#waiting >= this.#limits.waiting) return false;
    return (this.#lanes.get(lane)?.waiting.size ?? 0) < this.#limits.waitingPerLane;
  }

  /** Takes a job into its lane. Where there is no room it is let go: its row stays due, and the sweep brings it again. */
  offer(job: Job): void {
    if (this.#closed || !this.wants(job)) return;
    const lane = this.#lanes.get(job.lane) ?? { waiting: new Fifo<Job>(), running: 0 };
    this.#known.add(job.key);
    this.#lanes.set(job.lane, lane);
    lane.waiting.add(job);
    this.#waiting++;
    this.#wake(job.lane, lane);
    this.#start();
  }

  /** Takes no more jobs, forgets those that wait, and resolves when the ones in hand are done. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #wake(name: string, lane: Lane): void {
    if (lane.running >= this.#limits.perLane || lane.waiting.size === 0 || this.#readySet.has(name)) return;
    this.#readySet.add(name);
    this.#ready.push(name);
  }

  #start(): void {
    while (!this.#closed && this.#running < this.#limits.total) {
      const name = this.#ready.shift();
      if (name === undefined) return;
      this.#readySet.delete(name);
      const lane = this.#lanes.get(name);
      const job = lane?.waiting.take();
      if (lane === undefined || job === undefined) continue;
      this.#waiting--;
      lane.running++;
      this.#running++;
      this.#wake(name, lane);
      void this.#finish(name, lane, job);
    }
  }

  async #finish(name: string, lane: Lane, job: Job): Promise<void> {
    try {
      await this.#run(job);
    } catch (error) {
      log("webhook").error("a push failed", { key: job.key, error: String(error) });
    }
    lane.running--;
    this.#running--;
    this.#known.delete(job.key);
    if (lane.running === 0 && lane.waiting.size === 0) this.#lanes.delete(name);
    else this.#wake(name, lane);
    if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve();
    this.#start();
  }
}
