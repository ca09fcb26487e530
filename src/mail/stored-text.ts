import { firstChars } from "../core/first-chars.ts";

/**
 * Text that SQLite TEXT and JSON can hold and show: no NUL (SQLite ends a text there), no other controls but tab and
 * line ends (terminal escapes), no lone surrogates; CRLF and CR become LF.
 */
export function storedText(text: string): string {
  return text
    .toWellFormed()
    .replace(/\r\n?/g, "\n")
    .replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g, "");
}

/** The same on one line: tabs and line ends become spaces. At most `maxChars` characters. */
export function storedLine(text: string, maxChars: number): string {
  const line = storedText(text.slice(0, maxChars * 2))
    .replace(/[\t\n\u2028\u2029]+/g, " ")
    .trim();
  return line.length > maxChars ? firstChars(line, maxChars) : line;
}
