const NUL = 0x00;

/** Least octets of a block a message is collected in; each is as large as all before it together. */
const MIN_BLOCK_BYTES = 1024;
/** Largest block added at a time, so that a message never holds much more memory than it has octets. */
const MAX_BLOCK_BYTES = 1024 * 1024;

/** Why a message is refused though it was read to its end. */
export type MessageFault = "bareLineEnd" | "nul" | "tooLarge";
export type MessageResult = { raw: Uint8Array } | { fault: MessageFault };

/** Collects octets in blocks that grow with the message: a sender of single octets costs no more than any other. */
class Collector {
  #blocks: Uint8Array[] = [];
  #block = new Uint8Array(0);
  #used = 0;
  #size = 0;

  add(slice: Uint8Array): void {
    let rest = slice;
    while (rest.length > 0) {
      if (this.#used === this.#block.length) this.#grow(rest.length);
      const part = rest.subarray(0, this.#block.length - this.#used);
      this.#block.set(part, this.#used);
      this.#used += part.length;
      this.#size += part.length;
      rest = rest.subarray(part.length);
    }
  }

  #grow(needed: number): void {
    const size = Math.min(Math.max(needed, this.#size, MIN_BLOCK_BYTES), MAX_BLOCK_BYTES);
    this.#block = new Uint8Array(size);
    this.#blocks.push(this.#block);
    this.#used = 0;
  }

  /** All octets in one array of exactly their number. */
  take(): Uint8Array {
    if (this.#blocks.length === 1 && this.#used === this.#block.length) return this.#block;
    const whole = new Uint8Array(this.#size);
    let at = 0;
    for (const block of this.#blocks) {
      const part = block.subarray(0, Math.min(block.length, this.#size - at));
      whole.set(part, at);
      at += part.length;
    }
    this.clear();
    return whole;
  }

  clear(): void {
    this.#blocks = [];
    this.#block = new Uint8Array(0);
    this.#used = 0;
    this.#size = 0;
  }
}

/** The octets of a message as they come in, and what is wrong with it. Nothing is held of one that has a fault. */
export class KeptMessage {
  readonly #maxBytes: number;
  readonly #octets = new Collector();
  #size = 0;
  #bareLineEnd = false;
  #nul = false;

  /** `maxBytes`: octets of the message (RFC 1870 §3). */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
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

  result(): MessageResult {
    const fault = this.#fault();
    return fault === null ? { raw: this.#octets.take() } : { fault };
  }

  /** One fault where there are several, the same however the octets were split: smuggling first. */
  #fault(): MessageFault | null {
    if (this.#bareLineEnd) return "bareLineEnd";
    if (this.#nul) return "nul";
    return this.#size > this.#maxBytes ? "tooLarge" : null;
  }
}
