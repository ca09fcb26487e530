const NUL = 0x00;
const LF = 0x0a;
const CR = 0x0d;
const DOT = 0x2e;

/** Least octets of a block a message is collected in; each is as large as all before it together. */
const MIN_BLOCK_BYTES = 1024;
/** Largest block added at a time, so that a message never holds much more memory than it has octets. */
const MAX_BLOCK_BYTES = 1024 * 1024;

/** Why a message is refused though it was read to its end. */
export type DataFault = "bareLineEnd" | "nul" | "tooLarge";
export type DataResult = { raw: Uint8Array } | { fault: DataFault };

/**
 * Where the machine stands between two octets: `lineStart` after a CRLF or at the very start, `dot` behind a dot there,
 * `dotCr` behind the CR of a line that is one dot, `text` within a line, `cr` behind a CR there, `done` at the end.
 */
type State = "lineStart" | "dot" | "dotCr" | "text" | "cr" | "done";

interface Expectation {
  octet: number;
  next: State;
  /** Whether the octet is part of the message: stuffed dots and the final dot's line are not (RFC 5321 §4.5.2). */
  kept: boolean;
  /** Whether any other octet proves the CR before it to be a bare one. */
  afterCr: boolean;
}

/** The one octet each state waits for. Any other is read as text of the line; text itself is scanned, not stepped. */
const EXPECTED: Record<Exclude<State, "text" | "done">, Expectation> = {
  lineStart: { octet: DOT, next: "dot", kept: false, afterCr: false },
  dot: { octet: CR, next: "dotCr", kept: false, afterCr: false },
  dotCr: { octet: LF, next: "done", kept: false, afterCr: true },
  cr: { octet: LF, next: "lineStart", kept: true, afterCr: true },
};

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

/**
 * Reads one message after DATA: takes away stuffed dots and finds the end, which is CRLF.CRLF and nothing else.
 * A CR or LF outside a CRLF, a NUL, or more than `maxBytes` octets make it a refused message, which is still read to
 * its true end: whoever ended it earlier would take its remains for commands (SMTP smuggling).
 */
export class DataReader {
  readonly #maxBytes: number;
  readonly #kept = new Collector();
  #state: State = "lineStart";
  #size = 0;
  #bareLineEnd = false;
  #nul = false;
  /** Next CR and LF of the chunk in hand, searched anew only when passed: no octet is looked at twice. */
  #cr = -1;
  #lf = -1;

  /** `maxBytes`: octets of the message without stuffed dots and the final dot's line (RFC 1870 §3). */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Reads `chunk` from `from` on. Returns the index behind the message's end, or -1 when all was read and none came. */
  feed(chunk: Uint8Array, from: number): number {
    let pos = from;
    let run = from; // Start of the octets not yet kept.
    this.#cr = this.#lf = -1;
    while (pos < chunk.length && this.#state !== "done") {
      if (this.#state === "text") {
        pos = this.#scanText(chunk, pos);
        continue;
      }
      const expected = EXPECTED[this.#state];
      if (chunk[pos] !== expected.octet) {
        this.#state = "text";
        if (expected.afterCr) this.#bareLineEnd = true;
        continue;
      }
      this.#state = expected.next;
      if (!expected.kept) {
        this.#keep(chunk.subarray(run, pos));
        run = pos + 1;
      }
      pos++;
    }
    if (this.#state === "done") return pos;
    this.#keep(chunk.subarray(run));
    return -1;
  }

  /** Goes behind the next CR or LF; a LF met first belongs to no CRLF. */
  #scanText(chunk: Uint8Array, pos: number): number {
    if (this.#cr < pos) this.#cr = indexOr(chunk, CR, pos);
    if (this.#lf < pos) this.#lf = indexOr(chunk, LF, pos);
    if (this.#lf < this.#cr) this.#bareLineEnd = true;
    else if (this.#cr < chunk.length) this.#state = "cr";
    return Math.min(this.#cr, this.#lf) + 1;
  }

  #keep(slice: Uint8Array): void {
    if (slice.length === 0) return;
    this.#size += slice.length;
    if (!this.#nul && slice.indexOf(NUL) >= 0) this.#nul = true;
    if (this.#fault() === null) this.#kept.add(slice);
    else this.#kept.clear();
  }

  /** One fault where there are several, the same however the octets were split: smuggling first. */
  #fault(): DataFault | null {
    if (this.#bareLineEnd) return "bareLineEnd";
    if (this.#nul) return "nul";
    return this.#size > this.#maxBytes ? "tooLarge" : null;
  }

  /** The message, once `feed` has found its end. */
  result(): DataResult {
    if (this.#state !== "done") throw new Error("The message has not ended.");
    const fault = this.#fault();
    return fault === null ? { raw: this.#kept.take() } : { fault };
  }
}

function indexOr(chunk: Uint8Array, octet: number, from: number): number {
  const at = chunk.indexOf(octet, from);
  return at < 0 ? chunk.length : at;
}
