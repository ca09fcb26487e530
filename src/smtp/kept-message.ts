import type { MessageMemory } from "./message-memory.ts";
import { CR, LF } from "./octets.ts";

const NUL = 0x00;

/** A message of up to so many octets is collected in ordinary memory, which doubles when it is full. */
const MAX_SMALL_OCTETS = 64 * 1024;
/** Octets that it has from its second piece on. */
const MIN_OCTETS = 1024;
/** The memory of a larger message grows by so many octets at a time, and so is never much more than the message. */
const GROWTH_OCTETS = 1024 * 1024;

/** Why a message is refused though it was read to its end. */
export type MessageFault = "bareLineEnd" | "nul" | "tooLarge";
/** A message that was read to its end: its octets, or why it is refused. */
export type MessageResult = { raw: Uint8Array } | { fault: MessageFault };

/**
 * Collects octets. A large message grows in one piece of memory that the threads share: neither putting it together nor
 * handing it to the thread that reads it takes a copy. Addresses are set aside for the largest message, and take memory
 * only as they are filled.
 */
class Collector {
  readonly #limit: number;
  readonly #memory: MessageMemory | undefined;
  #octets: Uint8Array = new Uint8Array(0);
  #shared: SharedArrayBuffer | null = null;
  #size = 0;

  /** `limit`: octets of the largest message. */
  constructor(limit: number, memory: MessageMemory | undefined) {
    this.#limit = limit;
    this.#memory = memory;
  }

  add(slice: Uint8Array): void {
    const size = this.#size + slice.length;
    if (size > this.#octets.length) this.#grow(size);
    this.#octets.set(slice, this.#size);
    this.#size = size;
    if (this.#shared !== null) this.#memory?.brought(slice.length);
  }

  #grow(size: number): void {
    if (size <= MAX_SMALL_OCTETS) {
      // A message that comes in one piece has its place at once.
      const room = this.#size === 0 ? size : Math.max(size, 2 * this.#size, MIN_OCTETS);
      const larger = new Uint8Array(Math.min(MAX_SMALL_OCTETS, room));
      larger.set(this.#octets.subarray(0, this.#size));
      this.#octets = larger;
      return;
    }
    const before = this.#shared === null ? this.#octets.subarray(0, this.#size) : null;
    this.#shared ??=
      this.#memory?.take() ?? new SharedArrayBuffer(0, { maxByteLength: largest(this.#limit) });
    // Memory that was used before has its size already.
    if (this.#shared.byteLength < size) this.#shared.grow(roundedUp(size));
    this.#octets = new Uint8Array(this.#shared, 0, this.#shared.byteLength);
    if (before !== null) this.#octets.set(before);
  }

  /** All octets in one array of exactly their number. */
  take(): Uint8Array {
    const octets = this.#octets;
    const size = this.#size;
    const shared = this.#shared;
    this.#forget();
    if (shared !== null) return new Uint8Array(shared, 0, size);
    // A small one is to have memory of its exact size, for it may be kept long.
    return octets.length === size ? octets : octets.slice(0, size);
  }

  clear(): void {
    if (this.#shared !== null) this.#memory?.giveBack(this.#shared);
    this.#forget();
  }

  #forget(): void {
    this.#octets = new Uint8Array(0);
    this.#shared = null;
    this.#size = 0;
  }
}

function roundedUp(octets: number): number {
  return Math.ceil(octets / GROWTH_OCTETS) * GROWTH_OCTETS;
}

/** Octets of the line end that a message may get from us, beyond its limit. */
const LINE_END = Uint8Array.of(CR, LF);

/** Octets that the memory of a large message may take, for messages up to a limit. */
export function largest(limit: number): number {
  return roundedUp(Math.max(limit + LINE_END.length, MAX_SMALL_OCTETS));
}

/** The octets of a message as they come in, and what is wrong with it. Nothing is held of one that has a fault. */
export class KeptMessage {
  readonly #maxBytes: number;
  readonly #octets: Collector;
  #size = 0;
  #bareLineEnd = false;
  #nul = false;

  /** `maxBytes`: octets of the message (RFC 1870 §3). `memory`: where a large one has its place; left out: its own. */
  constructor(maxBytes: number, memory?: MessageMemory) {
    this.#maxBytes = maxBytes;
    this.#octets = new Collector(maxBytes, memory);
  }

  /** Octets of the message so far. */
  get size(): number {
    return this.#size;
  }

  /** Whether the message is refused already. */
  get faulty(): boolean {
    return this.#fault() !== null;
  }

  /** Octets held in memory. */
  get held(): number {
    return this.faulty ? 0 : this.#size;
  }

  /** A CR or LF of the message is no part of a CRLF. */
  foundBareLineEnd(): void {
    this.#bareLineEnd = true;
  }

  add(slice: Uint8Array): void {
    if (slice.length === 0) return;
    this.#size += slice.length;
    if (!this.#nul && slice.indexOf(NUL) >= 0) this.#nul = true;
    if (this.#fault() === null) this.#octets.add(slice);
    else this.#octets.clear();
  }

  /** Adds the line end that the message lacks. It is ours: its sender has kept to the limit without it. */
  endLine(): void {
    if (this.#fault() === null) this.#octets.add(LINE_END);
  }

  result(): MessageResult {
    const fault = this.#fault();
    if (fault === null) return { raw: this.#octets.take() };
    this.discard();
    return { fault };
  }

  /** Lets go of what is held of a message that is not taken: it has a fault, or will not end. */
  discard(): void {
    this.#octets.clear();
  }

  /** One fault where there are several, the same however the octets were split: smuggling first. */
  #fault(): MessageFault | null {
    if (this.#bareLineEnd) return "bareLineEnd";
    if (this.#nul) return "nul";
    return this.#size > this.#maxBytes ? "tooLarge" : null;
  }
}
