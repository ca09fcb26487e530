import { MessageBuffer, type MessageResult } from "./message-buffer.ts";
import type { MessageMemory } from "./message-memory.ts";
import { CR, indexOr, LF } from "./input-buffer.ts";

const DOT = 0x2e;

/**
 * State between two octets. `lineStart`: after a CRLF or at the start. `dot`: after a dot at `lineStart`. `dotCr`:
 * after the CR of a line that is one dot. `text`: within a line. `cr`: after a CR within a line. `done`: at the end.
 */
type State = "lineStart" | "dot" | "dotCr" | "text" | "cr" | "done";

interface Expectation {
  octet: number;
  next: State;
  /** True if the octet is part of the message. Stuffed dots and the line of the final dot are not (RFC 5321 §4.5.2). */
  kept: boolean;
  /** True if any other octet proves that the CR before it is bare. */
  afterCr: boolean;
}

/** The one octet each state expects. Any other octet is text, which is scanned rather than stepped through. */
const EXPECTED: Record<Exclude<State, "text" | "done">, Expectation> = {
  lineStart: { octet: DOT, next: "dot", kept: false, afterCr: false },
  dot: { octet: CR, next: "dotCr", kept: false, afterCr: false },
  dotCr: { octet: LF, next: "done", kept: false, afterCr: true },
  cr: { octet: LF, next: "lineStart", kept: true, afterCr: true },
};

/**
 * Reads one message after DATA: removes stuffed dots and finds the end, which is only CRLF.CRLF. If the message has a
 * CR or LF outside a CRLF, has a NUL, or is over `maxBytes`, it is refused but still read to its true end. Otherwise
 * the rest could be read as commands (SMTP smuggling).
 */
export class DataReader {
  readonly #kept: MessageBuffer;
  #state: State = "lineStart";
  /** Positions of the next CR and LF in the chunk. Each octet is searched once. */
  #cr = -1;
  #lf = -1;

  /** @param maxBytes octets of the message without stuffed dots and the final dot's line (RFC 1870 §3) */
  constructor(maxBytes: number, memory?: MessageMemory) {
    this.#kept = new MessageBuffer(maxBytes, memory);
  }

  /** Octets held in memory. */
  get held(): number {
    return this.#kept.held;
  }

  /** Reads `chunk` from `from`. Returns the index after the message's end, or -1 if the end has not come. */
  feed(chunk: Uint8Array, from: number): number {
    let pos = from;
    let run = from; // Start of the octets not yet added.
    this.#cr = this.#lf = -1;
    while (pos < chunk.length && this.#state !== "done") {
      if (this.#state === "text") {
        pos = this.#scanText(chunk, pos);
        continue;
      }
      const expected = EXPECTED[this.#state];
      if (chunk[pos] !== expected.octet) {
        this.#state = "text";
        if (expected.afterCr) this.#kept.foundBareLineEnd();
        continue;
      }
      this.#state = expected.next;
      if (!expected.kept) {
        this.#kept.add(chunk.subarray(run, pos));
        run = pos + 1;
      }
      pos++;
    }
    if (this.#state === "done") return pos;
    this.#kept.add(chunk.subarray(run));
    return -1;
  }

  /** Moves after the next CR or LF. If LF comes first, it is a bare one. */
  #scanText(chunk: Uint8Array, pos: number): number {
    if (this.#cr < pos) this.#cr = indexOr(chunk, CR, pos);
    if (this.#lf < pos) this.#lf = indexOr(chunk, LF, pos);
    if (this.#lf < this.#cr) this.#kept.foundBareLineEnd();
    else if (this.#cr < chunk.length) this.#state = "cr";
    return Math.min(this.#cr, this.#lf) + 1;
  }

  /** Frees the memory of a message that will not be completed. */
  discard(): void {
    this.#kept.discard();
  }

  /** Returns the message. Call only after `feed` has found its end. */
  result(): MessageResult {
    if (this.#state !== "done") throw new Error("The message has not ended.");
    return this.#kept.result();
  }
}
