import type { Clock } from "../core/clock.ts";
import { log } from "../log.ts";
import type { Job } from "../queue/port.ts";
import { Fifo } from "../core/fifo.ts";

/** What may be in hand and what may wait, in numbers of jobs. */
export interface LaneLimits {
  /** Jobs of one lane in hand at a time. */
  perLane: number;
  /** Jobs of all lanes in hand at a time, those of slow lanes apart. */
  total: number;
  /**
   * A job in hand for longer, in milliseconds, makes its lane a slow one; a job that is done sooner makes it a quick one, where the
   * lane has none such in hand.
   */
  slowAfterMs: number;
  /**
   * Jobs of all slow lanes in hand at a time. They begin in half of these places; the other half is for jobs whose lane
   * turns slow while they are in hand.
   */
  slowTotal: number;
  /** Jobs of one lane that may wait here, so that one that hangs does not fill the room of all. */
  waitingPerLane: number;
  /** Jobs of all lanes that may wait here. */
  waiting: number;
}

/** Lanes that are remembered as slow while they are empty; the one remembered longest is forgotten first. */
const MAX_KNOWN_SLOW = 10_000;

interface Lane {
  name: string;
  waiting: Fifo<Job>;
  running: number;
  /** Of those the ones that have been in hand for longer than `slowAfterMs`. */
  late: number;
  pace: Pace;
}

/** Lanes of one pace and the places that they share. */
interface Pace {
  /** Jobs in hand beyond which no other is begun. */
  total: number;
  running: number;
  /** Lanes that have both a job and a place, in the order of their turn. */
  ready: Set<Lane>;
}

/**
 * Jobs that wait, each in the lane of those that it shares something with. Lanes take turns, so one that hangs holds its
 * own few places and delays no other. Slow lanes are counted apart: however many of them hang, after `slowAfterMs` they no
 * longer hold places of the quick ones.
 */
export class Lanes {
  readonly #limits: LaneLimits;
  readonly #run: (job: Job) => Promise<void>;
  readonly #clock: Clock;
  readonly #lanes = new Map<string, Lane>();
  /** Keys that wait or run here: a job offered again is the same job. */
  readonly #known = new Set<string>();
  readonly #quick: Pace;
  readonly #slow: Pace;
  readonly #knownSlow = new Set<string>();
  #waiting = 0;
  #closed = false;
  #idle: (() => void)[] = [];

  constructor(clock: Clock, limits: LaneLimits, run: (job: Job) => Promise<void>) {
    this.#clock = clock;
    this.#limits = limits;
    this.#run = run;
    this.#quick = { total: limits.total, running: 0, ready: new Set() };
    this.#slow = { total: Math.ceil(limits.slowTotal / 2), running: 0, ready: new Set() };
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
    const lane = this.#lanes.get(job.lane) ?? this.#newLane(job.lane);
    this.#known.add(job.key);
    this.#lanes.set(job.lane, lane);
    lane.waiting.add(job);
    this.#waiting++;
    this.#wake(lane);
    this.#start();
  }

  /** Takes no more jobs, forgets those that wait, and resolves when the ones in hand are done. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#inHand() > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #inHand(): number {
    return this.#quick.running + this.#slow.running;
  }

  #newLane(name: string): Lane {
    const pace = this.#knownSlow.has(name) ? this.#slow : this.#quick;
    return { name, waiting: new Fifo<Job>(), running: 0, late: 0, pace };
  }

  #wake(lane: Lane): void {
    if (lane.running < this.#limits.perLane && lane.waiting.size > 0) lane.pace.ready.add(lane);
  }

  #start(): void {
    for (const pace of [this.#quick, this.#slow])
      for (const lane of pace.ready) {
        if (this.#closed || pace.running >= pace.total) break;
        // Taken out and, where it has more, put in again behind the others.
        pace.ready.delete(lane);
        const job = lane.waiting.take();
        if (job === undefined) continue;
        this.#waiting--;
        lane.running++;
        pace.running++;
        this.#wake(lane);
        void this.#finish(lane, job);
      }
  }

  async #finish(lane: Lane, job: Job): Promise<void> {
    let quick = true;
    const cancel = this.#clock.after(this.#limits.slowAfterMs, () => {
      quick = false;
      lane.late++;
      this.#turn(lane, this.#slow);
      this.#start();
    });
    try {
      await this.#run(job);
    } catch (error) {
      log("webhook").error("a push failed", { key: job.key, error: String(error) });
    }
    cancel();
    lane.running--;
    lane.pace.running--;
    if (!quick) lane.late--;
    // Those that hang still would take places of the quick ones, and nobody takes them back.
    else if (lane.late === 0) this.#turn(lane, this.#quick);
    this.#known.delete(job.key);
    if (lane.running === 0 && lane.waiting.size === 0) this.#lanes.delete(lane.name);
    else this.#wake(lane);
    if (this.#inHand() === 0) for (const resolve of this.#idle.splice(0)) resolve();
    this.#start();
  }

  /** Counts a lane and what it has in hand among those of a pace. Where there is no room for it, it stays where it is. */
  #turn(lane: Lane, pace: Pace): void {
    const { slowTotal } = this.#limits;
    if (lane.pace === pace || (pace === this.#slow && pace.running + lane.running > slowTotal)) return;
    lane.pace.ready.delete(lane);
    lane.pace.running -= lane.running;
    lane.pace = pace;
    pace.running += lane.running;
    this.#wake(lane);
    this.#knownSlow.delete(lane.name);
    if (pace === this.#slow) this.#knownSlow.add(lane.name);
    const [oldest] = this.#knownSlow;
    if (this.#knownSlow.size > MAX_KNOWN_SLOW && oldest !== undefined) this.#knownSlow.delete(oldest);
  }
}
