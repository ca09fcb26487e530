import { isAsciiText } from "../../core/ascii.ts";

/** A text part as nodemailer's composer takes it. */
export interface TextEntry {
  content: string;
  contentTransferEncoding?: "quoted-printable";
}

/** Text with CRLF line ends only: CRLF, a bare CR and a bare LF each end one line. */
export function normalizeLineEnds(text: string): string {
  return text.toWellFormed().replace(/\r\n|\r|\n/g, "\r\n");
}

/**
 * The entry of a text; nothing where there is none. The composer chooses the encoding, but for a text that would pass
 * as 7bit and must not: one with a line that an mbox would alter ("From "), with the boundary in it, with a control, or
 * of white space alone.
 */
export function textEntry(text: string | null | undefined, boundary: string): TextEntry | undefined {
  if (text === null || text === undefined || text === "") return undefined;
  const content = normalizeLineEnds(text);
  const mustEncode =
    /^From /m.test(content) || content.includes(boundary) || CONTROL.test(content) || BLANK.test(content);
  return mustEncode || isLongLined(content)
    ? { content, contentTransferEncoding: "quoted-printable" }
    : { content };
}

/** What the composer comes to quoted-printable for as well, having counted all letters. */
function isLongLined(content: string): boolean {
  return isAsciiText(content) && hasLongLine(content) && /[A-Za-z]/.test(content);
}

/** Characters of a line that the composer leaves as it is. */
const MAX_LINE_CHARS = 76;

/** Whether a line of text with CRLF line ends is longer than that. */
function hasLongLine(content: string): boolean {
  for (let start = 0; start + MAX_LINE_CHARS < content.length; ) {
    const found = content.indexOf("\r\n", start);
    const end = found < 0 ? content.length : found;
    if (end - start > MAX_LINE_CHARS) return true;
    start = end + 2;
  }
  return false;
}

/** Whether the text is printable ASCII, tabs and line ends. */
export function isPlainAscii(text: string): boolean {
  return isAsciiText(text) && !CONTROL.test(text);
}

/** Rspamd does not take such a body for an empty one (RFC 6376 §3.4.4), and calls its signature broken. */
const BLANK = /^[ \t\r\n]*$/;

const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/;
