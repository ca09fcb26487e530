import type { Clock } from "../core/clock.ts";

/** Octets that a message may hold without asking: mail of usual size flows whatever the large ones do. */
export const FREE_OCTETS = 64 * 1024;
/** How often a large message that all others wait for is looked at, and what it must have gained by then. */
export const PROGRESS_MS = 5_000;
export const PROGRESS_OCTETS = 20 * 1024;

/** A connection with a message that has begun and has no answer yet. */
export interface Holder {
  /** Reads on. */
  resume(): void;
  /** Ends the session: its message holds up all others. */
  giveUp(): void;
}

interface Held {
  octets: number;
  /** Whether it waits for room. */
  paused: boolean;
  /** Octets at the last look. */
  before: number;
}

/**
 * Bounds what the unfinished messages of all connections hold in memory. Over the limit only the oldest large message
 * is read on, and the others wait; so there is always one that can end, unless it drips, and then it goes.
 */
export class Intake {
  readonly #clock: Clock;
  readonly #limit: number;
  /** In the order in which messages became large. */
  readonly #large = new Map<Holder, Held>();
  /** Those that need no turn: small ones, and whole ones. */
  readonly #aside = new Map<Holder, number>();
  #total = 0;
  #watching = false;

  /** `limit`: octets of all messages together; each may grow past it by one message. */
  constructor(clock: Clock, limit: number) {
    this.#clock = clock;
    this.#limit = limit;
  }

  /** Whether one more message may begin. */
  get open(): boolean {
    return this.#total <= 2 * this.#limit;
  }

  /**
   * Notes what the holder's message has in memory now, 0 for none; `whole` once all of it is there and only its answer
   * is to come. Returns whether it may be read on.
   */
  hold(holder: Holder, octets: number, whole = false): boolean {
    const known = this.#large.get(holder);
    const before = known?.octets ?? this.#aside.get(holder) ?? 0;
    this.#total += octets - before;
    if (whole || octets <= FREE_OCTETS)
      return this.#keepAside(holder, octets, known !== undefined || octets < before);
    this.#aside.delete(holder);
    const held = known ?? { octets, paused: false, before: octets };
    held.octets = octets;
    if (known === undefined) this.#large.set(holder, held);
    if (octets < before) this.#letIn();
    held.paused = this.#total > this.#limit && !this.#isOldest(holder);
    this.#watch();
    return !held.paused;
  }

  #keepAside(holder: Holder, octets: number, freed: boolean): boolean {
    this.#large.delete(holder);
    if (octets === 0) this.#aside.delete(holder);
    else this.#aside.set(holder, octets);
    if (freed) this.#letIn();
    return true;
  }

  #isOldest(holder: Holder): boolean {
    return this.#large.keys().next().value === holder;
  }

  /** Lets those that wait read on, as far as there is room for a piece of each; the oldest in any case. */
  #letIn(): void {
    let room = this.#limit - this.#total;
    for (const [holder, held] of this.#large) {
      if (room <= 0 && !this.#isOldest(holder)) return;
      room -= FREE_OCTETS;
      if (!held.paused) continue;
      held.paused = false;
      holder.resume();
    }
  }

  #watch(): void {
    if (this.#watching || this.#total <= this.#limit) return;
    this.#watching = true;
    for (const held of this.#large.values()) held.before = held.octets;
    this.#clock.after(PROGRESS_MS, () => this.#look());
  }

  #look(): void {
    this.#watching = false;
    const [oldest] = this.#large;
    if (oldest !== undefined && this.#total > this.#limit) {
      const [holder, { octets, before }] = oldest;
      if (octets - before < PROGRESS_OCTETS) holder.giveUp();
    }
    this.#watch();
  }
}
