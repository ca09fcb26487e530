import { firstChars } from "../../core/first-chars.ts";
import { CR, LF } from "../octets.ts";

/** RFC 5321 §4.5.3.1.5 says 512 octets; of a line of a peer with long explanations so many are kept. */
export const MAX_REPLY_LINE_OCTETS = 2048;
/** Lines of one reply that are kept. */
export const MAX_REPLY_LINES = 128;
/** Octets of one reply; an endless one ends here. */
export const MAX_REPLY_OCTETS = 256 * 1024;

/** Characters kept of a reply's text: a peer may send a quarter of a megabyte, and it is stored with each attempt. */
export const MAX_EXPLANATION = 2000;

/** The peer ends the session with this (RFC 5321 §3.8). */
export const CLOSING = 421;

/** A reply as the peer sent it. */
export interface Reply {
  code: number;
  /** RFC 3463 status code of its first line that has one. */
  enhanced: string | null;
  /** Text of each line, code and enhanced code taken off, control characters made spaces. */
  lines: string[];
}

/** The peer does not speak SMTP; the connection cannot be used any further. */
export class ReplySyntaxError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ReplySyntaxError";
  }
}

export interface ReplyParser {
  /**
   * Takes bytes and hands on the replies that are now whole. Those before a fault are handed on too: the last of them may
   * be the one by which the peer has taken a message.
   * @throws ReplySyntaxError; the parser is of no use afterwards
   */
  push(chunk: Uint8Array, handOn: (reply: Reply) => void): void;
  /** Whether part of a reply waits for its rest. */
  pending(): boolean;
}

interface Line {
  code: number;
  last: boolean;
  text: string;
}

/** RFC 5321 §4.2.1: three digits, then a hyphen on all lines but the last. */
const LINE = /^([2-5][0-9]{2})(?:([ -])(.*))?$/s;
const ENHANCED = /^([245]\.[0-9]{1,3}\.[0-9]{1,3})(?:[ \t]+|$)/;
const CONTROL = /[\x00-\x1f\x7f\u0080-\u009f]+/g;

/**
 * Cuts the peer's bytes into replies. Takes a bare LF as the end of a line, as some peers send it. A long reply is read to
 * its end though not all of it is kept: it may be the one by which the peer takes a message, which would be sent again.
 */
export function createReplyParser(): ReplyParser {
  let line: Buffer = NOTHING;
  let open: Line[] = [];
  let octets = 0;
  const take = (whole: Line, handOn: (reply: Reply) => void): void => {
    const before = open.at(-1);
    // Codes of two classes leave open what the peer means.
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

/** As much of a line as is kept, and one octet for its CR. */
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

/** The code of the last line counts, where they differ: some peers write the reason in front of it. */
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

/** RFC 5321 §4.2.1: the first digit tells, and holds for codes that nobody knows. */
export function isSuccess({ code }: Reply): boolean {
  return code >= 200 && code < 300;
}

/** The text of a reply in one line, cut to what is worth keeping. */
export function explanation(reply: Reply): string {
  return firstChars(reply.lines.join(" "), MAX_EXPLANATION);
}

/** The reply in one line, as it is shown: `550 5.1.1 no such user`. */
export function replyText(reply: Reply): string {
  return [String(reply.code), reply.enhanced ?? "", explanation(reply)]
    .filter((part) => part !== "")
    .join(" ");
}
