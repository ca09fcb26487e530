import type { MessageMemory } from "./message-memory.ts";
import { CR, LF } from "./input-buffer.ts";
import { REPLIES, type Reply } from "./reply.ts";

const NUL = 0x00;

/** A message of up to this size is collected in ordinary memory, which doubles when it is full. */
const MAX_SMALL_OCTETS = 64 * 1024;
/** Memory of a message from its second piece on. */
const MIN_OCTETS = 1024;
/** Memory of a larger message grows in steps of this size, so little of it is unused. */
const GROWTH_OCTETS = 1024 * 1024;

/** Reason why a message is refused after it was read to its end. */
export type MessageFault = "bareLineEnd" | "nul" | "tooLarge";
/** A message read to its end, or the reason why it is refused. */
export type MessageResult = { raw: Uint8Array } | { fault: MessageFault };

/**
 * Collects octets. A large message uses memory that threads share, so neither growing it nor passing it to the
 * inspector copies it. Address space for the largest message is reserved, and takes memory only when filled.
 */
class Collector {
  readonly #limit: number;
  readonly #memory: MessageMemory | undefined;
  #octets: Uint8Array = new Uint8Array(0);
  #shared: SharedArrayBuffer | null = null;
  #size = 0;

  /** @param limit octets of the largest message */
  constructor(limit: number, memory: MessageMemory | undefined) {
    this.#limit = limit;
    this.#memory = memory;
  }

  add(slice: Uint8Array): void {
    const size = this.#size + slice.length;
    if (size > this.#octets.length) this.#grow(size);
    this.#octets.set(slice, this.#size);
    this.#size = size;
    if (this.#shared !== null) this.#memory?.countReceived(slice.length);
  }

  #grow(size: number): void {
    if (size <= MAX_SMALL_OCTETS) {
      // A message that comes in one piece needs no spare memory.
      const room = this.#size === 0 ? size : Math.max(size, 2 * this.#size, MIN_OCTETS);
      const larger = new Uint8Array(Math.min(MAX_SMALL_OCTETS, room));
      larger.set(this.#octets.subarray(0, this.#size));
      this.#octets = larger;
      return;
    }
    const before = this.#shared === null ? this.#octets.subarray(0, this.#size) : null;
    this.#shared ??=
      this.#memory?.take() ?? new SharedArrayBuffer(0, { maxByteLength: maxSharedOctets(this.#limit) });
    // Reused memory may be large enough already.
    if (this.#shared.byteLength < size) this.#shared.grow(roundedUp(size));
    this.#octets = new Uint8Array(this.#shared, 0, this.#shared.byteLength);
    if (before !== null) this.#octets.set(before);
  }

  /** Returns all octets in one array of exact length. */
  take(): Uint8Array {
    const octets = this.#octets;
    const size = this.#size;
    const shared = this.#shared;
    this.#forget();
    if (shared !== null) return new Uint8Array(shared, 0, size);
    // A small message may be kept for long, so give it memory of its exact size.
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

/** The line end that we may add to a message, beyond its limit. */
const LINE_END = Uint8Array.of(CR, LF);

/** Returns the most memory that a message within `limit` may take. */
export function maxSharedOctets(limit: number): number {
  return roundedUp(Math.max(limit + LINE_END.length, MAX_SMALL_OCTETS));
}

/** Collects the octets of a message and notes its faults. If it has one, its octets are discarded. */
export class MessageBuffer {
  readonly #maxBytes: number;
  readonly #octets: Collector;
  #size = 0;
  #bareLineEnd = false;
  #nul = false;

  /**
   * @param maxBytes octets of the message (RFC 1870 §3)
   * @param memory pool for large messages; without it, each allocates its own
   */
  constructor(maxBytes: number, memory?: MessageMemory) {
    this.#maxBytes = maxBytes;
    this.#octets = new Collector(maxBytes, memory);
  }

  /** Octets of the message so far. */
  get size(): number {
    return this.#size;
  }

  /** True if the message will be refused. */
  get faulty(): boolean {
    return this.#fault() !== null;
  }

  /** Octets held in memory. */
  get held(): number {
    return this.faulty ? 0 : this.#size;
  }

  /** Notes that a CR or LF is not part of a CRLF. */
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

  /** Adds the missing line end. It does not count towards the limit, because we add it. */
  endLine(): void {
    if (this.#fault() === null) this.#octets.add(LINE_END);
  }

  result(): MessageResult {
    const fault = this.#fault();
    if (fault === null) return { raw: this.#octets.take() };
    this.discard();
    return { fault };
  }

  /** Frees the memory of a message that is refused or will not be completed. */
  discard(): void {
    this.#octets.clear();
  }

  /** If there are several faults, reports smuggling first, however the octets were split. */
  #fault(): MessageFault | null {
    if (this.#bareLineEnd) return "bareLineEnd";
    if (this.#nul) return "nul";
    return this.#size > this.#maxBytes ? "tooLarge" : null;
  }
}

export const FAULT_REPLIES: Record<MessageFault, Reply> = {
  bareLineEnd: REPLIES.bareLineEnd,
  nul: REPLIES.nulInMessage,
  tooLarge: REPLIES.tooLarge,
};

/**
 * Faults after DATA that another server may read as the end of the message. The octets after it may be smuggled commands
 * (CVE-2023-51766), so the session ends. After BDAT the size is known, so there is no ambiguity.
 */
export const AMBIGUOUS: ReadonlySet<MessageFault> = new Set(["bareLineEnd", "nul"]);
