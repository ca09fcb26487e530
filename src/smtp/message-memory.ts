import { edenGC } from "bun:jsc";
import type { Clock } from "../core/clock.ts";

/** Pieces of memory that wait for their next message: as many large messages as come at a time (`listener`). */
export const MAX_FREE = 3;
/** Time without a large message after which the memory is let go of. */
export const IDLE_MS = 60_000;
/**
 * Octets of large messages that come between two short collections. What the socket hands over takes memory of its own
 * with each piece; the collector lets as much of it pile up as there is in use, which is more than two of the largest messages.
 */
export const COLLECTED_OCTETS = 8 * 1024 * 1024;

/**
 * The memory of large messages, shared with the thread that reads them. It is used again from one message to the next:
 * the garbage collector hardly counts such memory, and lets several times as much pile up before it runs.
 */
export class MessageMemory {
  readonly #clock: Clock;
  readonly #maxOctets: number;
  readonly #free: SharedArrayBuffer[] = [];
  /** What messages have. Memory that came back twice would be given to two of them. */
  readonly #lent = new WeakSet<SharedArrayBuffer>();
  readonly #collect: () => void;
  #brought = 0;
  #cancelIdle: () => void = () => undefined;

  /** `maxOctets`: of the largest piece that is asked for. `collect`: frees what was used a moment ago. */
  constructor(clock: Clock, maxOctets: number, collect: () => void = edenGC) {
    this.#clock = clock;
    this.#maxOctets = maxOctets;
    this.#collect = collect;
  }

  /** Pieces that wait. */
  get free(): number {
    return this.#free.length;
  }

  /** Memory that can grow to the largest message. What an earlier one left may be in it. */
  take(): SharedArrayBuffer {
    this.#idleAnew();
    const memory = this.#free.pop() ?? new SharedArrayBuffer(0, { maxByteLength: this.#maxOctets });
    this.#lent.add(memory);
    return memory;
  }

  /** Notes that a piece of so many octets has been put into lent memory. */
  brought(octets: number): void {
    this.#brought += octets;
    if (this.#brought < COLLECTED_OCTETS) return;
    this.#brought = 0;
    this.#collect();
  }

  /** Takes back what nobody will read any more; anything but lent memory is none of its business. */
  giveBack(memory: ArrayBufferLike): void {
    if (!(memory instanceof SharedArrayBuffer) || !this.#lent.delete(memory)) return;
    if (this.#free.length < MAX_FREE) this.#free.push(memory);
    this.#idleAnew();
  }

  /** A message may never give back its own, so what waits beside it is let go of all the same. */
  #idleAnew(): void {
    this.#cancelIdle();
    this.#cancelIdle = this.#clock.after(IDLE_MS, () => this.clear());
  }

  /** Lets go of what waits. */
  clear(): void {
    this.#cancelIdle();
    this.#free.length = 0;
  }
}
