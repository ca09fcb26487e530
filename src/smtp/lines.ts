import { isUtf8 } from "node:buffer";
import { CR, LF } from "./octets.ts";
import { REPLIES, type Reply } from "./reply.ts";

/** Octets of a command line, CRLF included: 512 (RFC 5321 §4.5.3.1.4) and room for the extensions' parameters. */
export const MAX_COMMAND_LINE_OCTETS = 2048;

const NOTHING = Buffer.alloc(0);

/** A command line without its CRLF, or the refusal of one that was read over. */
export type Line = string | Reply;

/** The peer's octets that nobody has read yet, handed out as command lines or, after DATA, as they are. */
export class Input {
  #bytes: Buffer = NOTHING;
  /** Whether the start of an overlong line was thrown away already. */
  #overlong = false;

  get length(): number {
    return this.#bytes.length;
  }

  add(chunk: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
  }

  clear(): void {
    this.#bytes = NOTHING;
    this.#overlong = false;
  }

  /** Lets `read` see everything; it returns how many octets it took. */
  take(read: (bytes: Uint8Array) => number): void {
    this.#keepFrom(read(this.#bytes));
  }

  /** The next whole line; null until its CRLF is there. */
  line(): Line | null {
    const end = lineEnd(this.#bytes);
    if (end < 0) {
      this.#keepPart();
      return null;
    }
    const line = this.#bytes.subarray(0, end);
    this.#keepFrom(end + 2);
    const overlong = this.#overlong || end + 2 > MAX_COMMAND_LINE_OCTETS;
    this.#overlong = false;
    if (overlong) return REPLIES.lineTooLong;
    return isUtf8(line) ? line.toString("utf8") : REPLIES.notUtf8;
  }

  #keepFrom(at: number): void {
    this.#bytes = at === this.#bytes.length ? NOTHING : this.#bytes.subarray(at);
  }

  /**
   * Keeps the start of a line whose end has not come, without the large chunk it may be a view of. A line longer than
   * any is read over: of it only the last octet is kept, which may be the first half of its CRLF.
   */
  #keepPart(): void {
    const overlong = this.#bytes.length > MAX_COMMAND_LINE_OCTETS;
    if (overlong) this.#overlong = true;
    const part = overlong ? this.#bytes.subarray(-1) : this.#bytes;
    this.#bytes = part.buffer.byteLength > 4 * MAX_COMMAND_LINE_OCTETS ? Buffer.from(part) : part;
  }
}

/** Index of the first CRLF, -1 where there is none. A bare LF ends no line (RFC 5321 §2.3.8). */
function lineEnd(bytes: Buffer): number {
  let lf = bytes.indexOf(LF);
  while (lf >= 0 && (lf === 0 || bytes[lf - 1] !== CR)) lf = bytes.indexOf(LF, lf + 1);
  return lf < 0 ? -1 : lf - 1;
}
