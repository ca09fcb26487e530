import type { Clock } from "../../core/time/clock.ts";

/** A message of up to this size needs no permission, so large messages do not delay usual mail. */
export const FREE_OCTETS = 64 * 1024;
/** Interval at which the oldest sender's progress is checked. */
export const PROGRESS_MS = 5_000;
/**
 * Octets the oldest sender must send per interval; at this rate 25 MiB take nine minutes. Without it, one slow sender
 * could block all large messages at no cost (slowloris). It gets 421.
 */
export const PROGRESS_OCTETS = 256 * 1024;

/**
 * While complete messages wait for our reply, the oldest large one is read up to this multiple of the limit. The memory
 * from here to `SMALL_SHARE` is for small messages, so that a rush of large ones does not block them.
 */
const OLDEST_SHARE = 1.5;
/** Small messages are read, and new ones may begin, up to this multiple of the limit. */
const SMALL_SHARE = 2;

/** `coming`: more octets are expected. `whole`: only the reply is missing. `none`: there is no message. */
export type Stage = "none" | "coming" | "whole";

/** A connection with a message that is not answered yet. */
export interface Holder {
  /** Stops reading. */
  pause(): void;
  /** Continues reading. */
  resume(): void;
  /** Ends the session, because its slow message blocks all others. */
  giveUp(): void;
}

interface Held {
  octets: number;
  /** Octets at the last check; null if it was paused since then. */
  before: number | null;
}

/**
 * Bounds the memory of unanswered messages of all connections. Over the limit, only the oldest large message is read,
 * so that it can finish; if it is too slow, its session ends. Over 1.5 times the limit, the oldest waits too if replies
 * of ours are due that will free memory. Over twice the limit, small messages wait as well, and none may begin.
 */
export class Intake {
  readonly #clock: Clock;
  readonly #limit: number;
  /** Totals at which connections must be paused. */
  readonly #limits: readonly number[];
  /** Large messages, oldest first. */
  readonly #queue = new Map<Holder, Held>();
  readonly #small = new Map<Holder, Held>();
  readonly #whole = new Map<Holder, Held>();
  /** Large messages that are paused. */
  readonly #paused = new Set<Holder>();
  #total = 0;
  #timerSet = false;

  /** @param limit octets of all messages; one message and one read may exceed twice the limit */
  constructor(clock: Clock, limit: number) {
    this.#clock = clock;
    this.#limit = limit;
    this.#limits = [limit, OLDEST_SHARE * limit, SMALL_SHARE * limit];
  }

  /** Octets of all messages now. */
  get octets(): number {
    return this.#total;
  }

  /** True if another message may begin. */
  get hasRoom(): boolean {
    return this.#total <= SMALL_SHARE * this.#limit;
  }

  /** Records the memory and stage of a message. Returns true if its connection may read on. */
  update(holder: Holder, octets: number, stage: Stage): boolean {
    const queued = this.#queue.get(holder);
    const known = queued ?? this.#small.get(holder) ?? this.#whole.get(holder);
    // Nearly every command ends here: no message has begun.
    if (known === undefined && stage === "none") return true;
    const held = known ?? { octets: 0, before: null };
    // An answered message frees memory, even if the next one's octets have already arrived.
    const answered = this.#whole.has(holder) && stage !== "whole";
    const freed = octets < held.octets || answered;
    this.#count(octets - held.octets);
    held.octets = octets;
    const needsTurn = stage === "coming" && (octets > FREE_OCTETS || !this.hasRoom);
    if (needsTurn) this.#putInQueue(holder, held);
    else this.#putAside(holder, held, stage);
    if (freed || (queued !== undefined && !needsTurn)) this.#resumePaused();
    this.#startTimer();
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
    if (this.#mayContinue(holder)) this.#paused.delete(holder);
    else {
      this.#paused.add(holder);
      held.before = null;
    }
  }

  /** If a limit is exceeded, pauses the active connections at once: one more read of each would be too much. */
  #count(more: number): void {
    const before = this.#total;
    this.#total += more;
    if (!this.#limits.some((limit) => before <= limit && this.#total > limit)) return;
    for (const [holder, held] of [...this.#queue, ...(this.hasRoom ? [] : this.#small)]) {
      if (this.#paused.has(holder)) continue;
      this.#putInQueue(holder, held);
      if (this.#paused.has(holder)) holder.pause();
    }
  }

  #mayContinue(holder: Holder): boolean {
    return this.#isOldest(holder) ? this.#oldestMayContinue() : this.#total <= this.#limit;
  }

  #isOldest(holder: Holder): boolean {
    return this.#queue.keys().next().value === holder;
  }

  /** The oldest waits only if a reply of ours is due, because that reply frees memory. */
  #oldestMayContinue(): boolean {
    return this.#total <= OLDEST_SHARE * this.#limit || this.#whole.size === 0;
  }

  /** Resumes paused connections while there is memory for one piece of each. The oldest may continue in any case. */
  #resumePaused(): void {
    let room = this.#limit - this.#total;
    for (const holder of this.#queue.keys()) {
      if (room <= 0 && !(this.#isOldest(holder) && this.#oldestMayContinue())) return;
      room -= FREE_OCTETS;
      if (this.#paused.delete(holder)) holder.resume();
    }
  }

  #startTimer(): void {
    if (this.#timerSet || this.#paused.size === 0) return;
    this.#timerSet = true;
    this.#clock.after(PROGRESS_MS, () => this.#checkProgress());
  }

  /**
   * Ends the oldest session if it was not paused and sent too little since the last check. Records the progress of all.
   */
  #checkProgress(): void {
    this.#timerSet = false;
    const [oldest] = this.#queue;
    if (oldest !== undefined && this.#paused.size > 0) {
      const [holder, { octets, before }] = oldest;
      if (before !== null && octets - before < PROGRESS_OCTETS) holder.giveUp();
    }
    for (const [holder, held] of this.#queue) held.before = this.#paused.has(holder) ? null : held.octets;
    this.#startTimer();
  }
}
