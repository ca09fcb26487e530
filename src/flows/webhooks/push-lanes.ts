import type { Clock } from "../../core/time/clock.ts";
import { log } from "../../log.ts";
import type { Job } from "../../queue/port.ts";
import { Fifo } from "../../core/collections.ts";
import { LanePace } from "./lane-pace.ts";
import { LaneWindow } from "./lane-window.ts";

/** Limits of running jobs and of jobs that wait. */
export interface LaneLimits {
  /** Maximum number of running jobs of one lane, whatever its endpoint answers. */
  perLane: number;
  /** Maximum number of running jobs of one lane whose endpoint answers well. */
  mostPerLane: number;
  /** Maximum number of running jobs of all quick lanes. */
  total: number;
  /**
   * Milliseconds of running after which a job makes its lane a slow one. If a job ends sooner and no late one of
   * the lane still runs, the lane is quick again.
   */
  slowAfterMs: number;
  /**
   * Maximum number of running jobs of all slow lanes. They may start in half of this number. The other half is for
   * jobs whose lane turns slow while they run.
   */
  slowTotal: number;
  /** Jobs of one lane that may wait here, so that a lane that hangs does not take the room of all. */
  waitingPerLane: number;
  /** Jobs of all lanes that may wait here. */
  waiting: number;
}

/** Maximum number of empty lanes that are remembered as slow. If there are more, the oldest is dropped. */
const MAX_KNOWN_SLOW = 10_000;

/** An endpoint's answer to a job. */
export interface JobReport {
  /** False if the job failed, or the endpoint could not take that many. */
  well: boolean;
  /** Milliseconds that it took. */
  ms: number;
}

/** Runs a job. Returns null if it tells nothing about the endpoint. */
export type RunJob = (job: Job) => Promise<JobReport | null>;

interface Lane {
  name: string;
  project: string;
  waiting: Fifo<Job>;
  running: number;
  /** Jobs that have run longer than `slowAfterMs`. */
  late: number;
  window: LaneWindow;
  pace: LanePace<Lane>;
}

/**
 * Waiting jobs, each in the lane of its endpoint. Lanes take turns, and so do projects, so an endpoint that hangs
 * does not delay the others. While an endpoint answers well, its lane runs more and more jobs. Slow lanes are
 * counted apart: however many of them hang, after `slowAfterMs` they take no room of the quick ones.
 */
export class Lanes {
  readonly #limits: LaneLimits;
  readonly #run: RunJob;
  readonly #clock: Clock;
  readonly #lanes = new Map<string, Lane>();
  /** Keys that wait or run here. A job that is offered again is ignored. */
  readonly #known = new Set<string>();
  readonly #quick: LanePace<Lane>;
  readonly #slow: LanePace<Lane>;
  readonly #knownSlow = new Set<string>();
  #waiting = 0;
  #closed = false;
  #idle: (() => void)[] = [];

  constructor(clock: Clock, limits: LaneLimits, run: RunJob) {
    this.#clock = clock;
    this.#limits = limits;
    this.#run = run;
    this.#quick = new LanePace(limits.total, limits.perLane);
    this.#slow = new LanePace(Math.ceil(limits.slowTotal / 2), limits.perLane);
  }

  /** Returns whether the job of that key waits or runs here. */
  has(key: string): boolean {
    return this.#known.has(key);
  }

  /**
   * Returns whether the job would be taken: it is not here yet, and there is room for it. Check it before a hint,
   * because a hint without room is dropped and hinted again, which would keep Redis busy for nothing.
   */
  wants({ key, lane }: Job): boolean {
    if (this.#known.has(key) || this.#waiting >= this.#limits.waiting) return false;
    return (this.#lanes.get(lane)?.waiting.size ?? 0) < this.#limits.waitingPerLane;
  }

  /** Takes a job into its lane. If there is no room it is dropped. Its row stays due, so the sweep brings it again. */
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

  /** Takes no more jobs, drops those that wait, and resolves when the running ones are done. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#inHand() > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #inHand(): number {
    return this.#quick.running + this.#slow.running;
  }

  #newLane(name: string): Lane {
    const { perLane: least, mostPerLane: most } = this.#limits;
    const pace = this.#knownSlow.has(name) ? this.#slow : this.#quick;
    const window = new LaneWindow({ least, most });
    return { name, project: projectOf(name), waiting: new Fifo<Job>(), running: 0, late: 0, window, pace };
  }

  #wake(lane: Lane): void {
    const most = lane.pace === this.#slow ? this.#limits.perLane : lane.window.size;
    if (lane.running < most && lane.waiting.size > 0) lane.pace.add(lane);
    else lane.pace.remove(lane);
  }

  #start(): void {
    for (const pace of [this.#quick, this.#slow])
      for (let lane = pace.next(); lane !== null && !this.#closed; lane = pace.next()) {
        const job = lane.waiting.take();
        if (job === undefined) continue;
        this.#waiting--;
        lane.running++;
        pace.count(lane, 1);
        this.#wake(lane);
        void this.#finish(lane, job);
      }
  }

  async #finish(lane: Lane, job: Job): Promise<void> {
    const number = lane.window.start();
    let quick = true;
    const cancel = this.#clock.after(this.#limits.slowAfterMs, () => {
      quick = false;
      lane.late++;
      lane.window.answeredBadly(number);
      this.#setPace(lane, this.#slow);
      this.#start();
    });
    const report = await this.#try(job);
    cancel();
    lane.running--;
    lane.pace.count(lane, -1);
    if (!quick) lane.late--;
    // If late jobs still ran, they would take room of the quick lanes.
    else if (lane.late === 0) this.#setPace(lane, this.#quick);
    if (report?.well === false) lane.window.answeredBadly(number);
    else if (report !== null && quick) lane.window.answeredWell(report.ms, lane.waiting.size > 0);
    this.#known.delete(job.key);
    if (lane.running === 0 && lane.waiting.size === 0) this.#lanes.delete(lane.name);
    this.#wake(lane);
    if (this.#inHand() === 0) for (const resolve of this.#idle.splice(0)) resolve();
    this.#start();
  }

  async #try(job: Job): Promise<JobReport | null> {
    try {
      return await this.#run(job);
    } catch (error) {
      log("webhook").error("a push failed", { key: job.key, error: String(error) });
      return null;
    }
  }

  /** Moves a lane and its running jobs to a pace. If there is no room for it, it keeps its pace. */
  #setPace(lane: Lane, pace: LanePace<Lane>): void {
    const { slowTotal } = this.#limits;
    if (lane.pace === pace || (pace === this.#slow && pace.running + lane.running > slowTotal)) return;
    lane.pace.remove(lane);
    lane.pace.count(lane, -lane.running);
    lane.pace = pace;
    pace.count(lane, lane.running);
    this.#wake(lane);
    this.#knownSlow.delete(lane.name);
    if (pace === this.#slow) this.#knownSlow.add(lane.name);
    const [oldest] = this.#knownSlow;
    if (this.#knownSlow.size > MAX_KNOWN_SLOW && oldest !== undefined) this.#knownSlow.delete(oldest);
  }
}

/** Separates the project from the endpoint in a lane's name. */
const SEPARATOR = "/";

/** Returns the name of the lane of a project's endpoint. */
export function laneOf(project: string, endpoint: string): string {
  return `${project}${SEPARATOR}${endpoint}`;
}

/** Returns the project in a lane's name. If there is none, returns the lane's name. */
function projectOf(lane: string): string {
  const end = lane.indexOf(SEPARATOR);
  return end < 0 ? lane : lane.slice(0, end);
}
