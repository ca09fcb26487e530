import { KeptMessage, type MessageResult } from "./kept-message.ts";
import type { MessageMemory } from "./message-memory.ts";
import { CR, indexOr, LF } from "./octets.ts";

const DOT = 0x2e;

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

/**
 * Reads one message after DATA: takes away stuffed dots and finds the end, which is CRLF.CRLF and nothing else.
 * A CR or LF outside a CRLF, a NUL, or more than `maxBytes` octets make it a refused message, which is still read to
 * its true end: whoever ended it earlier would take its remains for commands (SMTP smuggling).
 */
export class DataReader {
  readonly #kept: KeptMessage;
  #state: State = "lineStart";
  /** Next CR and LF of the chunk in hand, searched anew only when passed: no octet is looked at twice. */
  #cr = -1;
  #lf = -1;

  /** `maxBytes`: octets of the message without stuffed dots and the final dot's line (RFC 1870 §3). */
  constructor(maxBytes: number, memory?: MessageMemory) {
    this.#kept = new KeptMessage(maxBytes, memory);
  }

  /** Octets held in memory. */
  get held(): number {
    return this.#kept.held;
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

  /** Goes behind the next CR or LF; a LF met first belongs to no CRLF. */
  #scanText(chunk: Uint8Array, pos: number): number {
    if (this.#cr < pos) this.#cr = indexOr(chunk, CR, pos);
    if (this.#lf < pos) this.#lf = indexOr(chunk, LF, pos);
    if (this.#lf < this.#cr) this.#kept.foundBareLineEnd();
    else if (this.#cr < chunk.length) this.#state = "cr";
    return Math.min(this.#cr, this.#lf) + 1;
  }

  /** Lets go of a message that will not end. */
  discard(): void {
    this.#kept.discard();
  }

  /** The message, once `feed` has found its end. */
  result(): MessageResult {
    if (this.#state !== "done") throw new Error("The message has not ended.");
    return this.#kept.result();
  }
}
