import { edenGC } from "bun:jsc";
import type { Clock } from "../../core/time/clock.ts";

/**
 * Maximum number of unused buffers that are kept: as many as large messages arrive at a time (`listener`).
 */
export const MAX_FREE = 3;
/** If no large message comes for this time, the unused buffers are freed. */
export const IDLE_MS = 60_000;
/**
 * Octets of large messages between two young-generation collections. Each piece from the socket has its own memory.
 * Without these collections, more than two of the largest messages would pile up.
 */
export const COLLECTED_OCTETS = 8 * 1024 * 1024;

/**
 * A pool of buffers for large messages, shared with the thread that reads them. Buffers are reused because the garbage
 * collector hardly counts shared memory, and would let several times as much pile up.
 */
export class MessageMemory {
  readonly #clock: Clock;
  readonly #maxOctets: number;
  readonly #free: SharedArrayBuffer[] = [];
  /** Buffers in use. If a buffer came back twice, two messages would get it. */
  readonly #lent = new WeakSet<SharedArrayBuffer>();
  readonly #collect: () => void;
  #received = 0;
  #cancelIdle: () => void = () => undefined;

  /**
   * @param maxOctets size of the largest message
   * @param collect frees short-lived objects
   */
  constructor(clock: Clock, maxOctets: number, collect: () => void = edenGC) {
    this.#clock = clock;
    this.#maxOctets = maxOctets;
    this.#collect = collect;
  }

  /** Unused buffers. */
  get free(): number {
    return this.#free.length;
  }

  /** Returns a buffer that can grow to the largest message. It may hold octets of an earlier one. */
  take(): SharedArrayBuffer {
    this.#restartIdleTimer();
    const memory = this.#free.pop() ?? new SharedArrayBuffer(0, { maxByteLength: this.#maxOctets });
    this.#lent.add(memory);
    return memory;
  }

  /** Counts octets written to a buffer. */
  countReceived(octets: number): void {
    this.#received += octets;
    if (this.#received < COLLECTED_OCTETS) return;
    this.#received = 0;
    this.#collect();
  }

  /** Takes a buffer back that no code reads any more. Ignores any other memory. */
  giveBack(memory: ArrayBufferLike): void {
    if (!(memory instanceof SharedArrayBuffer) || !this.#lent.delete(memory)) return;
    if (this.#free.length < MAX_FREE) this.#free.push(memory);
    this.#restartIdleTimer();
  }

  /** Restarts the idle timer. A lent buffer may never come back, so the timer runs even while some are in use. */
  #restartIdleTimer(): void {
    this.#cancelIdle();
    this.#cancelIdle = this.#clock.after(IDLE_MS, () => this.clear());
  }

  /** Frees the unused buffers. */
  clear(): void {
    this.#cancelIdle();
    this.#free.length = 0;
  }
}
