import type { Clock } from "../core/clock.ts";

/** Octets that a message may hold without asking: mail of usual size flows whatever the large ones do. */
export const FREE_OCTETS = 64 * 1024;
/** How often the sender that all others wait for is looked at. */
export const PROGRESS_MS = 5_000;
/**
 * What that sender must have brought since the last look; at this rate 25 MiB take nine minutes. Whoever brings less holds
 * up large mail for everybody at no cost of their own (slowloris), and is told to come again.
 */
export const PROGRESS_OCTETS = 256 * 1024;

/**
 * While whole messages wait for our answer, the oldest large one is read on up to this multiple of the limit. The room from
 * here to `SMALL_SHARE` is for mail of usual size: a rush of large mail must not turn it away.
 */
const OLDEST_SHARE = 1.5;
/** Small messages are read, and new ones begin, up to this multiple of the limit. */
const SMALL_SHARE = 2;

/** `coming`: octets are still to come. `whole`: only the answer is. `none`: no message has begun, or it is answered. */
export type Stage = "none" | "coming" | "whole";

/** A connection with a message that has begun and has no answer yet. */
export interface Holder {
  /** Reads no further. */
  pause(): void;
  /** Reads on. */
  resume(): void;
  /** Ends the session: its message holds up all others. */
  giveUp(): void;
}

interface Held {
  octets: number;
  /** Octets at the last look; null where it could not be read on all the time since. */
  before: number | null;
}

/**
 * Bounds what the messages of all connections hold in memory until they are answered. Over the limit only the oldest
 * large message is read on and the others wait, so one can always come to its end; one that drips is given up. Over one
 * and a half times the limit the oldest waits too, as long as answers of ours are due that will free memory. Over twice
 * the limit small messages wait as well, and none may begin.
 */
export class Intake {
  readonly #clock: Clock;
  readonly #limit: number;
  /** Totals at which somebody is to wait. */
  readonly #limits: readonly number[];
  /** Those that need a turn, in the order in which they came to need it. */
  readonly #queue = new Map<Holder, Held>();
  readonly #small = new Map<Holder, Held>();
  readonly #whole = new Map<Holder, Held>();
  /** Those of the queue that are not read on. */
  readonly #paused = new Set<Holder>();
  #total = 0;
  #watching = false;

  /** `limit`: octets of all messages together. Twice that is passed by one message and one read, no more. */
  constructor(clock: Clock, limit: number) {
    this.#clock = clock;
    this.#limit = limit;
    this.#limits = [limit, OLDEST_SHARE * limit, SMALL_SHARE * limit];
  }

  /** Octets of all messages now. */
  get octets(): number {
    return this.#total;
  }

  /** Whether one more message may begin. */
  get open(): boolean {
    return this.#total <= SMALL_SHARE * this.#limit;
  }

  /** Notes what the holder's message has in memory now, and how far it is. Returns whether it may be read on. */
  hold(holder: Holder, octets: number, stage: Stage): boolean {
    const queued = this.#queue.get(holder);
    const known = queued ?? this.#small.get(holder) ?? this.#whole.get(holder);
    // Between two messages, which is after nearly every command.
    if (known === undefined && stage === "none") return true;
    const held = known ?? { octets: 0, before: null };
    // An empty message frees no memory, and one that is answered may have the next one's octets behind it already.
    const answered = this.#whole.has(holder) && stage !== "whole";
    const freed = octets < held.octets || answered;
    this.#count(octets - held.octets);
    held.octets = octets;
    const needsTurn = stage === "coming" && (octets > FREE_OCTETS || !this.open);
    if (needsTurn) this.#putInQueue(holder, held);
    else this.#putAside(holder, held, stage);
    if (freed || (queued !== undefined && !needsTurn)) this.#letIn();
    this.#watch();
    return !this.#paused.has(holder);
  }

  #putAside(holder: Holder, held: Held, stage: Stage): void {
    for (const all of [this.#queue, this.#small, this.#whole, this.#paused]) all.delete(holder);
    if (stage === "coming") this.#small.set(holder, held);
    if (stage === "whole") this.#whole.set(holder, held);
  }

  #putInQueue(holder: Holder, held: Held): void {
    this.#small.delete(holder);
    this.#whole.delete(holder);
    this.#queue.set(holder, held);
    if (this.#goesOn(holder)) this.#paused.delete(holder);
    else {
      this.#paused.add(holder);
      held.before = null;
    }
  }

  /** When a limit is passed, those that were reading are paused at once: one more read of each would be too much. */
  #count(more: number): void {
    const before = this.#total;
    this.#total += more;
    if (!this.#limits.some((limit) => before <= limit && this.#total > limit)) return;
    for (const [holder, held] of [...this.#queue, ...(this.open ? [] : this.#small)]) {
      if (this.#paused.has(holder)) continue;
      this.#putInQueue(holder, held);
      if (this.#paused.has(holder)) holder.pause();
    }
  }

  #goesOn(holder: Holder): boolean {
    return this.#isOldest(holder) ? this.#oldestGoesOn() : this.#total <= this.#limit;
  }

  #isOldest(holder: Holder): boolean {
    return this.#queue.keys().next().value === holder;
  }

  /** The oldest waits only while an answer of ours is due, which comes whether it is read on or not. */
  #oldestGoesOn(): boolean {
    return this.#total <= OLDEST_SHARE * this.#limit || this.#whole.size === 0;
  }

  /** Lets those that wait read on, as far as there is room for a piece of each; the oldest where it may in any case. */
  #letIn(): void {
    let room = this.#limit - this.#total;
    for (const holder of this.#queue.keys()) {
      if (room <= 0 && !(this.#isOldest(holder) && this.#oldestGoesOn())) return;
      room -= FREE_OCTETS;
      if (this.#paused.delete(holder)) holder.resume();
    }
  }

  #watch(): void {
    if (this.#watching || this.#paused.size === 0) return;
    this.#watching = true;
    this.#clock.after(PROGRESS_MS, () => this.#look());
  }

  /** Gives the oldest up where it had the time since the last look and did not use it; notes where all stand. */
  #look(): void {
    this.#watching = false;
    const [oldest] = this.#queue;
    if (oldest !== undefined && this.#paused.size > 0) {
      const [holder, { octets, before }] = oldest;
      if (before !== null && octets - before < PROGRESS_OCTETS) holder.giveUp();
    }
    for (const [holder, held] of this.#queue) held.before = this.#paused.has(holder) ? null : held.octets;
    this.#watch();
  }
}
