import type { Clock } from "../core/clock.ts";
import { MINUTE_MS, SECOND_MS } from "../core/time-units.ts";
import type { Phase } from "./actions.ts";

/** How long a session may stay in one phase without getting on. */
export const PHASE_TIMEOUT_MS: Record<Phase, number> = {
  /** RFC 5321 §4.5.3.2.7: from the last answer to the end of the next command, so that dripping octets gains nothing. */
  command: 5 * MINUTE_MS,
  /** RFC 5321 §4.5.3.2.5: silence between two parts of a message. */
  data: 3 * MINUTE_MS,
  /** RFC 5321 §4.5.3.2.6: a client waits no longer for the answer to a message. */
  waiting: 10 * MINUTE_MS,
  /** From the answer to STARTTLS to the end of the handshake. */
  tls: MINUTE_MS,
  /** After our last word, for the client to read it and close. */
  closed: 5 * SECOND_MS,
};
/** From MAIL to the answer to DATA, however busy the client is. */
export const TRANSACTION_TIMEOUT_MS = 30 * MINUTE_MS;

/**
 * The time by which the session must have got on. A connection has one timer: when the deadline moves away the timer
 * stays, and looks again once it rings.
 */
export class Deadline {
  readonly #clock: Clock;
  readonly #passed: () => void;
  #at = Number.POSITIVE_INFINITY;
  /** The whole time of which the rest is left until then, milliseconds. */
  #limitMs = 0;
  #transaction = 0;
  #transactionEnd = Number.POSITIVE_INFINITY;
  #timerAt = Number.POSITIVE_INFINITY;
  #cancelTimer: () => void = () => {};
  #over = false;

  constructor(clock: Clock, passed: () => void) {
    this.#clock = clock;
    this.#passed = passed;
  }

  /** The session got on: it has the whole time of its phase again, but not more than is left of its transaction. */
  move({ phase, transaction }: { phase: Phase; transaction: number }): void {
    if (this.#over) return;
    const now = this.#clock.now();
    if (transaction !== this.#transaction) this.#transactionEnd = Number.POSITIVE_INFINITY;
    if (transaction > 0) this.#transactionEnd = Math.min(this.#transactionEnd, now + TRANSACTION_TIMEOUT_MS);
    this.#transaction = transaction;
    this.#limitMs = PHASE_TIMEOUT_MS[phase];
    this.#at = now + this.#limitMs;
    if (phase !== "closed") this.#at = Math.min(this.#at, this.#transactionEnd);
    if (this.#at < this.#timerAt) this.#arm(now);
  }

  /** The session waits for us: only its transaction still ends. */
  rest(): void {
    this.#limitMs = TRANSACTION_TIMEOUT_MS;
    this.#at = this.#transactionEnd;
  }

  cancel(): void {
    this.#over = true;
    this.#cancelTimer();
  }

  #arm(now: number): void {
    this.#cancelTimer();
    this.#timerAt = this.#at;
    this.#cancelTimer = this.#clock.after(this.#at - now, () => this.#ring());
  }

  #ring(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    if (this.#over) return;
    const now = this.#clock.now();
    // Of no time more can be left than all of it: a clock that was put back must not lengthen any.
    this.#at = Math.min(this.#at, now + this.#limitMs);
    if (now < this.#at) this.#arm(now);
    else this.#passed();
  }
}
