export interface WindowLimits {
  /** Jobs with which a window starts. It never becomes smaller. */
  least: number;
  most: number;
}

/** Time by which an answer may take longer than twice the shortest one, in milliseconds. Up to there it is noise. */
const NOISE_MS = 20;
/** Factor by which the shortest time grows with each answer, so that an endpoint may become slower for good. */
const GROWTH = 1.01;

/**
 * The number of jobs that run at once for one endpoint. It grows by one with each good answer, so it doubles in
 * each round trip. A bad answer halves it, and then it grows by one in each round trip. If answers take twice as
 * long as the shortest one, it does not grow, because more jobs would only wait there.
 */
export class LaneWindow {
  readonly #limits: WindowLimits;
  #size: number;
  /** Size from which it grows slowly. */
  #threshold = Number.POSITIVE_INFINITY;
  #shortestMs = Number.POSITIVE_INFINITY;
  #started = 0;
  /** Number of the first job that started after the last halving. Earlier ones tell of the larger window. */
  #current = 0;

  constructor(limits: WindowLimits) {
    this.#limits = limits;
    this.#size = limits.least;
  }

  /** Number of jobs that may run now. */
  get size(): number {
    return Math.floor(this.#size);
  }

  /** Counts a job that starts. Returns its number. */
  start(): number {
    return this.#started++;
  }

  /** Records a good answer and its time. `isFull`: more jobs wait. */
  answeredWell(ms: number, isFull: boolean): void {
    this.#shortestMs = Math.min(ms, this.#shortestMs * GROWTH);
    if (!isFull || ms > 2 * this.#shortestMs + NOISE_MS) return;
    const step = this.#size < this.#threshold ? 1 : 1 / this.#size;
    this.#size = Math.min(this.#limits.most, this.#size + step);
  }

  /**
   * Records that the job of that number failed or takes long. If several that ran together do, the window is halved
   * once.
   */
  answeredBadly(job: number): void {
    if (job < this.#current) return;
    this.#current = this.#started;
    this.#size = Math.max(this.#limits.least, this.#size / 2);
    this.#threshold = this.#size;
  }
}
