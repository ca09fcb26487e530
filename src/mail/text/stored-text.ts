import { firstChars } from "../../core/text.ts";

/**
 * Returns text that SQLite TEXT and JSON can hold and show. NUL ends a string in SQLite and is left out. Controls
 * other than tab and line ends are left out, because terminals obey them. Lone surrogates are replaced; CRLF and CR
 * become LF.
 */
export function storedText(text: string): string {
  return text
    .toWellFormed()
    .replace(/\r\n?/g, "\n")
    .replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g, "");
}

/**
 * Characters that change the order in which a line is shown: a file `exe.fdp` could be named to look like a PDF. The
 * marks U+200E and U+200F, which order only their neighbours, stay.
 */
export const REORDERING = /[\u202a-\u202e\u2066-\u2069]/g;

/**
 * Returns text as `storedText` does, on one line that is shown in its own order. Tabs and line ends become spaces. At
 * most `maxChars` characters.
 */
export function storedLine(text: string, maxChars: number): string {
  const line = storedText(text.slice(0, maxChars * 2))
    .replace(/[\t\n\u2028\u2029]+/g, " ")
    .replace(REORDERING, "")
    .trim();
  return line.length > maxChars ? firstChars(line, maxChars) : line;
}
