import { firstChars } from "../../core/text.ts";
import { CR, LF } from "../session/input-buffer.ts";

/** RFC 5321 §4.5.3.1.5 allows 512 octets. Peers send longer explanations, so this much of a line is kept. */
export const MAX_REPLY_LINE_OCTETS = 2048;
/** Lines of one reply that are kept. */
export const MAX_REPLY_LINES = 128;
/** Octets of one reply. If it is longer, the connection fails. */
export const MAX_REPLY_OCTETS = 256 * 1024;

/** Maximum characters kept of a reply's text. A peer may send 256 KiB, and each attempt stores it. */
export const MAX_EXPLANATION = 2000;

/** The peer closes the session with this code (RFC 5321 §3.8). */
export const CLOSING = 421;

/** A reply as the peer sent it. */
export interface Reply {
  code: number;
  /** RFC 3463 status code of the first line that has one. */
  enhanced: string | null;
  /** Text of each line without codes; control characters become spaces. */
  lines: string[];
}

/** The peer does not speak SMTP, so the connection is unusable. */
export class ReplySyntaxError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ReplySyntaxError";
  }
}

export interface ReplyParser {
  /**
   * Parses bytes and calls `handOn` with each complete reply. If a fault follows, the replies before it are passed on
   * too: the last one may accept a message.
   * @throws ReplySyntaxError; the parser is unusable afterwards
   */
  push(chunk: Uint8Array, handOn: (reply: Reply) => void): void;
  /** Returns true if a reply is incomplete. */
  pending(): boolean;
}

interface Line {
  code: number;
  last: boolean;
  text: string;
}

/** RFC 5321 §4.2.1: three digits, then a hyphen on all lines except the last. */
const LINE = /^([2-5][0-9]{2})(?:([ -])(.*))?$/s;
const ENHANCED = /^([245]\.[0-9]{1,3}\.[0-9]{1,3})(?:[ \t]+|$)/;
const CONTROL = /[\x00-\x1f\x7f\u0080-\u009f]+/g;

/**
 * Parses the peer's bytes into replies. Accepts a bare LF as line end, since some peers send it. Reads a long reply to
 * its end, though not all of it is kept: it may accept a message, which would otherwise be sent again.
 */
export function createReplyParser(): ReplyParser {
  let line: Buffer = NOTHING;
  let open: Line[] = [];
  let octets = 0;
  const take = (whole: Line, handOn: (reply: Reply) => void): void => {
    const before = open.at(-1);
    // If the lines' codes have different classes, the meaning is unclear.
    if (before !== undefined && classOf(before) !== classOf(whole))
      throw new ReplySyntaxError("reply with two codes");
    if (open.length >= MAX_REPLY_LINES) open.pop();
    open.push(whole);
    if (!whole.last) return;
    const lines = open;
    open = [];
    octets = 0;
    handOn(toReply(lines));
  };
  return {
    push(chunk, handOn) {
      for (let start = 0; start < chunk.length; ) {
        const lf = chunk.indexOf(LF, start);
        const end = lf < 0 ? chunk.length : lf;
        line = withMore(line, chunk.subarray(start, end));
        octets += (lf < 0 ? end : lf + 1) - start;
        if (octets > MAX_REPLY_OCTETS) throw new ReplySyntaxError("reply too long");
        if (lf < 0) return;
        const whole = parseLine(line);
        line = NOTHING;
        start = lf + 1;
        take(whole, handOn);
      }
    },
    pending: () => line.length > 0 || open.length > 0,
  };
}

const NOTHING = Buffer.alloc(0);

/** Adds to a line up to the limit, plus one octet for its CR. */
function withMore(line: Buffer, piece: Uint8Array): Buffer {
  const room = MAX_REPLY_LINE_OCTETS + 1 - line.length;
  return room > 0 ? Buffer.concat([line, piece.subarray(0, room)]) : line;
}

function parseLine(line: Buffer): Line {
  const end = line.at(-1) === CR ? line.length - 1 : Math.min(line.length, MAX_REPLY_LINE_OCTETS);
  const match = LINE.exec(line.toString("utf8", 0, end));
  if (match === null) throw new ReplySyntaxError("not an SMTP reply");
  return { code: Number(match[1]), last: match[2] !== "-", text: match[3] ?? "" };
}

function classOf({ code }: Line): number {
  return Math.floor(code / 100);
}

/** If the codes differ, the last line's counts: some peers write the reason before it. */
function toReply(lines: readonly Line[]): Reply {
  let enhanced: string | null = null;
  const texts = lines.map(({ text }) => {
    const found = ENHANCED.exec(text);
    enhanced ??= found?.[1] ?? null;
    return text
      .slice(found?.[0].length ?? 0)
      .replace(CONTROL, " ")
      .trim();
  });
  return { code: lines.at(-1)?.code ?? 0, enhanced, lines: texts };
}

/** RFC 5321 §4.2.1: the first digit decides, even if the code is unknown. */
export function isSuccess({ code }: Reply): boolean {
  return code >= 200 && code < 300;
}

/** Returns the text of a reply in one line, cut to MAX_EXPLANATION. */
export function explanation(reply: Reply): string {
  return firstChars(reply.lines.join(" "), MAX_EXPLANATION);
}

/** Formats a reply in one line, such as `550 5.1.1 no such user`. */
export function replyText(reply: Reply): string {
  return [String(reply.code), reply.enhanced ?? "", explanation(reply)]
    .filter((part) => part !== "")
    .join(" ");
}
