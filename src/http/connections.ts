import type { Clock } from "../core/clock.ts";

/** Time for which a connection is known, at least, behind its last request; for twice that at most. */
export const KNOWN_MS = 30_000;
/** Connections of one such time; with more of them they are forgotten sooner. */
export const MAX_KNOWN = 20_000;

/**
 * Tells the first request over a connection from others: Bun says nothing of connections but the address and port of the
 * other side. A client takes a port anew a minute after it has closed; where we closed it, now and then sooner.
 */
export class Connections {
  readonly #clock: Clock;
  #recent = new Set<string>();
  #older = new Set<string>();
  #since: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.now();
  }

  /** Whether a request is the first that is known of its connection. */
  isNew({ address, port }: { address: string; port: number }): boolean {
    const now = this.#clock.now();
    if (Math.abs(now - this.#since) >= KNOWN_MS || this.#recent.size >= MAX_KNOWN) {
      this.#older = this.#recent;
      this.#recent = new Set();
      this.#since = now;
    }
    const name = `${address} ${port}`;
    if (this.#recent.has(name)) return false;
    this.#recent.add(name);
    return !this.#older.has(name);
  }
}
