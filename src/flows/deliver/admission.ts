import {
  Admission,
  type AdmissionLimits,
  type Demand,
  type Release,
} from "../../core/concurrency/admission.ts";
import type { Clock } from "../../core/time/clock.ts";

/**
 * Messages admitted while their template is rendered. One thread renders a project's templates one after another, so
 * more of them in progress would only fill the limit of messages in flight (`dispatch/in-flight-limits`).
 */
export const RENDERING_LIMITS: AdmissionLimits = { total: 32, perOwner: 16, maxWaiting: 20_000 };

/** What a message of a broadcast weighs among these. More of a broadcast at once would fill the places of a receipt. */
export const BROADCAST_WEIGHT = 8;

/** Octets above which a message is large. */
export const LARGE_MESSAGE_OCTETS = 256 * 1024;

/**
 * Octets of large messages that are composed or in flight: a part of all octets in flight. So if peers take large
 * messages slowly, small messages still find room.
 */
export const LARGE_MESSAGE_LIMITS: AdmissionLimits = {
  total: 96 * 1024 * 1024,
  perOwner: Infinity,
  maxWaiting: 20_000,
};

/** How long an admitted demand is kept for a job that has not come back, milliseconds. */
export const DEMAND_KEPT_MS = 1_000;

interface KeptDemand {
  release: Release;
  /** Cancels the timer that gives the demand back. */
  keep: () => void;
}

/**
 * Admission of jobs that wait outside with only their key in memory. When a job's demand is admitted it is kept, and the
 * job comes again and takes it. If the job does not come (its message was canceled, or its destination is resting), the
 * demand is given back after DEMAND_KEPT_MS.
 */
export class JobAdmission {
  readonly #clock: Clock;
  readonly #admission: Admission;
  /** Admitted demands by job. */
  readonly #kept = new Map<string, KeptDemand>();

  constructor(clock: Clock, limits: AdmissionLimits) {
    this.#clock = clock;
    this.#admission = new Admission(limits);
  }

  /** Weight to give back before the next job is admitted. 0 if none waits, or each only for its own project. */
  get lacking(): number {
    return this.#admission.lacking;
  }

  /** Admits the job now. Returns null if it has to wait. */
  tryEnter(key: string, demand: Demand): Release | null {
    const kept = this.#kept.get(key);
    if (kept === undefined) return this.#admission.tryEnter(demand);
    this.#kept.delete(key);
    kept.keep();
    return kept.release;
  }

  /**
   * Resolves when the job should come again. Returns null at once if too many wait; the sweep then brings the job
   * again.
   */
  wait(key: string, demand: Demand): Promise<void> | null {
    return this.#admission.enter(demand)?.then((release) => this.#keep(key, release)) ?? null;
  }

  #keep(key: string, release: Release): void {
    const keep = this.#clock.after(DEMAND_KEPT_MS, () => {
      this.#kept.delete(key);
      release();
    });
    this.#kept.set(key, { release, keep });
  }
}
