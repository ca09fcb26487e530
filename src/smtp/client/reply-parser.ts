import { firstChars } from "../../core/first-chars.ts";
import { CR, LF } from "../octets.ts";

/** RFC 5321 §4.5.3.1.5 says 512 octets; peers with long explanations send more. */
export const MAX_REPLY_LINE_OCTETS = 2048;
/** Lines of one reply; an endless multi-line reply ends here. */
export const MAX_REPLY_LINES = 128;

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

/** RFC 5321 §4.2: three digits, then a hyphen on all lines but the last. */
const LINE = /^([2-5][0-9]{2})(?:([ -])(.*))?$/s;
const ENHANCED = /^([245]\.[0-9]{1,3}\.[0-9]{1,3})(?:[ \t]+|$)/;
const CONTROL = /[\x00-\x1f\x7f\u0080-\u009f]+/g;

/** Cuts the peer's bytes into replies. Takes a bare LF as the end of a line, as some peers send it. */
export function createReplyParser(): ReplyParser {
  let buffered: Buffer = Buffer.alloc(0);
  let open: Line[] = [];
  const take = (line: Line, handOn: (reply: Reply) => void): void => {
    const first = open[0];
    // Two codes in one reply leave open what the peer means.
    if (first !== undefined && first.code !== line.code) throw new ReplySyntaxError("reply with two codes");
    open.push(line);
    if (open.length > MAX_REPLY_LINES) throw new ReplySyntaxError("reply of too many lines");
    if (!line.last) return;
    const whole = open;
    open = [];
    handOn(toReply(whole));
  };
  return {
    push(chunk, handOn) {
      buffered = buffered.length === 0 ? Buffer.from(chunk) : Buffer.concat([buffered, chunk]);
      let start = 0;
      for (let end = buffered.indexOf(LF); end >= 0; end = buffered.indexOf(LF, start)) {
        take(parseLine(buffered, start, end), handOn);
        start = end + 1;
      }
      buffered = buffered.subarray(start);
      if (buffered.length > MAX_REPLY_LINE_OCTETS) throw new ReplySyntaxError("reply line too long");
    },
    pending: () => buffered.length > 0 || open.length > 0,
  };
}

function parseLine(buffer: Buffer, start: number, lf: number): Line {
  const end = lf > start && buffer[lf - 1] === CR ? lf - 1 : lf;
  if (end - start > MAX_REPLY_LINE_OCTETS) throw new ReplySyntaxError("reply line too long");
  const match = LINE.exec(buffer.toString("utf8", start, end));
  if (match === null) throw new ReplySyntaxError("not an SMTP reply");
  return { code: Number(match[1]), last: match[2] !== "-", text: match[3] ?? "" };
}

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
  return { code: lines[0]?.code ?? 0, enhanced, lines: texts };
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
