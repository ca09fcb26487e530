import { isUtf8 } from "node:buffer";
import { REPLIES, type Reply } from "./reply.ts";

/** Line feed. An SMTP line ends with CR LF (RFC 5321 §2.3.8). */
export const LF = 0x0a;
/** Carriage return. */
export const CR = 0x0d;

/** Returns the index of the next such octet from `from` on, or the length of `octets` if there is none. */
export function indexOr(octets: Uint8Array, octet: number, from: number): number {
  const at = octets.indexOf(octet, from);
  return at < 0 ? octets.length : at;
}

/**
 * Maximum octets of a command line with CRLF: 512 (RFC 5321 §4.5.3.1.4), plus room for the parameters of
 * extensions.
 */
export const MAX_COMMAND_LINE_OCTETS = 2048;

const NOTHING = Buffer.alloc(0);
const CRLF = Uint8Array.of(CR, LF);

/** A command line without its CRLF, or the reply to one that is too long or not UTF-8. */
export type CommandLine = string | Reply;

/** The peer's unread octets, read as command lines or, after DATA, as they are. */
export class InputBuffer {
  #bytes: Buffer = NOTHING;
  /** True if the start of an overlong line was discarded. */
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

  /** Passes all octets to `read`, which returns how many it has read. */
  take(read: (bytes: Uint8Array) => number): void {
    this.#keepFrom(read(this.#bytes));
  }

  /** Returns the next whole line, or null if its CRLF has not come. */
  line(): CommandLine | null {
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
   * Keeps the start of an unfinished line, but not the large chunk it may be a view of. If the line is too long, keeps
   * only its last octet, which may be the CR of its CRLF.
   */
  #keepPart(): void {
    const overlong = this.#bytes.length > MAX_COMMAND_LINE_OCTETS;
    if (overlong) this.#overlong = true;
    const part = overlong ? this.#bytes.subarray(-1) : this.#bytes;
    this.#bytes = part.buffer.byteLength > 4 * MAX_COMMAND_LINE_OCTETS ? Buffer.from(part) : part;
  }
}

/** Returns the index of the first CRLF, or -1. A bare CR or LF does not end a line (RFC 5321 §2.3.8). */
function lineEnd(bytes: Buffer): number {
  return bytes.indexOf(CRLF);
}
