import { isAsciiText } from "../../core/text.ts";

/** A text part in the form that nodemailer's composer takes. */
export interface TextEntry {
  content: string;
  contentTransferEncoding?: "quoted-printable";
}

/** Returns text with CRLF line ends only. A CRLF, a bare CR and a bare LF each end one line. */
export function normalizeLineEnds(text: string): string {
  return text.toWellFormed().replace(/\r\n|\r|\n/g, "\r\n");
}

/**
 * Returns the entry of a body, or nothing if there is none. The composer chooses the encoding, except for text that
 * would wrongly pass as 7bit. Such text has a "From " line that an mbox would alter, the boundary, a control, or
 * only white space.
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

/** Returns whether the composer would choose quoted-printable too, after counting all letters. */
function isLongLined(content: string): boolean {
  return isAsciiText(content) && hasLongLine(content) && /[A-Za-z]/.test(content);
}

/** Maximum characters of a line that the composer leaves unchanged. */
const MAX_LINE_CHARS = 76;

/** Returns whether a body with CRLF line ends has a longer line. */
export function hasLongLine(content: string): boolean {
  for (let start = 0; start + MAX_LINE_CHARS < content.length; ) {
    const found = content.indexOf("\r\n", start);
    const end = found < 0 ? content.length : found;
    if (end - start > MAX_LINE_CHARS) return true;
    start = end + 2;
  }
  return false;
}

/** Returns whether a body has only printable ASCII, tabs and line ends. */
export function isPlainAscii(text: string): boolean {
  return isAsciiText(text) && !CONTROL.test(text);
}

/** A body of white space only. Rspamd does not treat it as empty (RFC 6376 §3.4.4), and calls its signature broken. */
const BLANK = /^[ \t\r\n]*$/;

const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/;
