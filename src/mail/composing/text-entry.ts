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
 * as 7bit and must not: one with a line that an mbox would alter ("From "), with the boundary in it, or with a control.
 */
export function textEntry(text: string | null | undefined, boundary: string): TextEntry | undefined {
  if (text === null || text === undefined || text === "") return undefined;
  const content = normalizeLineEnds(text);
  const mustEncode = /^From /m.test(content) || content.includes(boundary) || CONTROL.test(content);
  return mustEncode || isLongLined(content)
    ? { content, contentTransferEncoding: "quoted-printable" }
    : { content };
}

/** What the composer comes to quoted-printable for as well, having counted all letters. */
function isLongLined(content: string): boolean {
  return /^.{77}/m.test(content) && /^[\x00-\x7f]*$/.test(content) && /[A-Za-z]/.test(content);
}

const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/;
