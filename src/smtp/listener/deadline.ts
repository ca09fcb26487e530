import type { Clock } from "../../core/time/clock.ts";
import { MINUTE_MS, SECOND_MS } from "../../core/time/units.ts";
import type { Phase } from "../session/actions.ts";

/** Time limits of each phase. */
export const PHASE_TIMEOUT_MS: Record<Phase, number> = {
  /**
   * RFC 5321 §4.5.3.2.7: from the last reply to the end of the next command. Sending octet by octet does not extend it.
   */
  command: 5 * MINUTE_MS,
  /** RFC 5321 §4.5.3.2.5: between two parts of a message. */
  data: 3 * MINUTE_MS,
  /** RFC 5321 §4.5.3.2.6: a client waits no longer than this for the reply to a message. */
  waiting: 10 * MINUTE_MS,
  /** From the reply to STARTTLS to the end of the handshake. */
  tls: MINUTE_MS,
  /** After our last reply, for the client to read it and close. */
  closed: 5 * SECOND_MS,
};
/** From MAIL to the reply to DATA, even if the client is active all the time. */
export const TRANSACTION_TIMEOUT_MS = 30 * MINUTE_MS;

/**
 * The time limit of a session. Each connection has one timer. If the deadline moves to a later time, the timer is kept
 * and checks again when it fires.
 */
export class Deadline {
  readonly #clock: Clock;
  readonly #passed: () => void;
  #at = Number.POSITIVE_INFINITY;
  #transaction = 0;
  #transactionEnd = Number.POSITIVE_INFINITY;
  #timerAt = Number.POSITIVE_INFINITY;
  #cancelTimer: () => void = () => {};
  #over = false;

  constructor(clock: Clock, passed: () => void) {
    this.#clock = clock;
    this.#passed = passed;
  }

  /** Restarts the limit of the phase, but never beyond the end of the transaction. */
  restart({ phase, transaction }: { phase: Phase; transaction: number }): void {
    if (this.#over) return;
    const now = this.#clock.elapsed();
    if (transaction !== this.#transaction) this.#transactionEnd = Number.POSITIVE_INFINITY;
    if (transaction > 0) this.#transactionEnd = Math.min(this.#transactionEnd, now + TRANSACTION_TIMEOUT_MS);
    this.#transaction = transaction;
    this.#at = now + PHASE_TIMEOUT_MS[phase];
    if (phase !== "closed") this.#at = Math.min(this.#at, this.#transactionEnd);
    if (this.#at < this.#timerAt) this.#arm(now);
  }

  /** The session waits for us: only the limit of the transaction applies. */
  suspend(): void {
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
    const now = this.#clock.elapsed();
    if (now < this.#at) this.#arm(now);
    else this.#passed();
  }
}
