import { firstChars } from "../../core/text.ts";

/**
 * Returns text that SQLite TEXT and JSON can hold and show. NUL ends a text in SQLite and is left out. Controls other than tab and line
 * ends are left out, because terminals obey them. Lone surrogates are replaced; CRLF and CR become LF.
 */
export function storedText(text: string): string {
  return text
    .toWellFormed()
    .replace(/\r\n?/g, "\n")
    .replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g, "");
}

/** Returns text as `storedText` does, on one line: tabs and line ends become spaces. At most `maxChars` characters. */
export function storedLine(text: string, maxChars: number): string {
  const line = storedText(text.slice(0, maxChars * 2))
    .replace(/[\t\n\u2028\u2029]+/g, " ")
    .trim();
  return line.length > maxChars ? firstChars(line, maxChars) : line;
}
