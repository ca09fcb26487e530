import { htmlText, MAX_HTML_CHARS, previewOf } from "./preview.ts";
import { isFooter } from "./footers.ts";
import { introductionStart, isQuoted, MAX_INTRO_CHARS } from "./introductions.ts";
import {
  ADDRESS,
  BLOCK_COMMON,
  BLOCK_FROM,
  BLOCK_OTHER,
  FORWARD,
  NOTES,
  REPLY_ABOVE,
  RULED,
  SEPARATOR,
  SIGNATURE,
  TIMED,
} from "./quote-signs.ts";

/** Maximum characters of a body that are searched for a quoted message. */
export const MAX_REPLY_CHARS = 64 * 1024;
/**
 * Characters of text or html for a preview alone, which is made on the main thread. The worst takes some ten
 * milliseconds.
 */
export const MAX_PREVIEW_READ_CHARS = 16 * 1024;
/** Lines below a "From:" that are searched for the other lines of a quoted header. */
const HEADER_BLOCK_LINES = 4;
/**
 * Maximum number of lines of text in a list's footer, or below "--". With more lines, the first one belongs to the
 * message.
 */
const MAX_FOOTER_LINES = 5;
const MAX_SIGNATURE_LINES = 10;

/**
 * Returns the new part of a reply, without the quoted message below it and the signature. A quoted block above the
 * new part is removed too. An answer between quoted lines stays with them. Returns the whole text if nothing else
 * would remain. Takes time linear in the text's length.
 */
export function replyText(text: string): string {
  const read = text.slice(0, MAX_REPLY_CHARS);
  const lines = read.replace(/\r\n?/g, "\n").split("\n");
  const quote = quoteStart(UNSEEN.test(read) ? lines.map(asSeen) : lines);
  const below = lines.slice(quote.end);
  const ruled = quote.at < lines.length;
  const above = trimQuotedEnd(withoutSignature(trimQuotedEnd(lines.slice(0, quote.at), ruled)), ruled);
  const answersWithin = below.some((line) => isQuoted(line)) && underQuote(below) !== null;
  // Only the start of a longer text is known. This is enough if the new part is above the quoted message.
  if (read.length < text.length)
    return below.length === 0 || isBlank(above) || answersWithin ? text : joined(above);
  if (isBlank(above)) return underQuote(below) ?? text;
  return joined(answersWithin ? withoutSignature(lines) : above);
}

/**
 * Returns the new part of a message that has only html. Null if it has no text, or is too long to be read to its end.
 */
export function htmlReplyText(html: string): string | null {
  const text = htmlText(html).trim();
  const reply = replyText(text).trim();
  const known = html.length <= MAX_HTML_CHARS || reply.length < text.length;
  return known && reply !== "" ? reply : null;
}

interface Bodies {
  text: string | null;
  html: string | null;
}

/** Returns the new part of a message, from its text or else its html. Null if there is none. */
export function newPart({ text, html }: Bodies): string | null {
  if (text !== null && (html === null || text.trim() !== "")) return replyText(text);
  return html === null ? null : htmlReplyText(html);
}

/** Returns the first characters of the new part. A list of threads shows new text, not the text it answers. */
export function newPreview({ text, html }: Bodies): string {
  const page = html === null ? null : pageBeginning(html);
  const reply = newPart({ text: text?.slice(0, MAX_PREVIEW_READ_CHARS) ?? null, html: page });
  return reply === null ? previewOf(text, page) : previewOf(reply, null);
}

/** Returns the start of an html's visible text: its head may be long and has none. */
function pageBeginning(html: string): string {
  const read = html.slice(0, MAX_HTML_CHARS);
  const body = Math.max(0, read.search(/<body\b/i));
  return read.slice(body, body + MAX_PREVIEW_READ_CHARS);
}

/** Non-breaking spaces, as French has before a colon, and direction marks, as around Hebrew. */
const UNSEEN = /[\u00a0\u200e\u200f\u202a-\u202f\u2066-\u2069]/;

/** Returns the visible line, with plain spaces and without marks. */
function asSeen(line: string): string {
  return line.replace(/[\u00a0\u202f]/g, " ").replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
}

interface QuoteStart {
  /** The first line of the introduction, or the number of lines if nothing is quoted. */
  at: number;
  /** The first line after it. */
  end: number;
}

function quoteStart(lines: readonly string[]): QuoteStart {
  // Most bodies quote nothing: they have no line that could begin a header or end an introduction.
  const anyColon = lines.some((line) => COLON.test(line));
  const anyIntroduces = anyColon && lines.some((line) => /[:：]$/.test(line.trimEnd()));
  for (const [at, line] of lines.entries()) {
    if ((anyColon && isHeaderBlock(lines, at)) || isSeparator(lines, at)) return { at, end: at + 1 };
    const start = anyIntroduces && /[:：]$/.test(line.trimEnd()) ? introductionStart(lines, at) : -1;
    if (start >= 0) return { at: start, end: at + 1 };
  }
  return { at: lines.length, end: lines.length };
}

const COLON = /[:：]/;
/** Dashes and lines that programs draw in place of hyphens. */
const DRAWN = /[\u2010-\u2015\u2500\u2501]/g;
/** A quick check: every separator begins with a row of marks or has a colon. */
const MAY_SEPARATE = /^\s*[-=_*#~>\u2010-\u2015\u2500\u2501]{2}|[:：]/;

function isSeparator(lines: readonly string[], at: number): boolean {
  if (!MAY_SEPARATE.test(lines[at] ?? "")) return false;
  const line = (lines[at] ?? "").trim().replace(DRAWN, "-");
  if (line.length > MAX_INTRO_CHARS) return false;
  if (REPLY_ABOVE.test(line)) return true;
  if (COLON.test(line) && (FORWARD.test(line) || (line.includes("--") && NOTES.test(line)))) return true;
  // Zoho breaks its line, too.
  const next = (lines[at + 1] ?? "").trim();
  const ruled =
    /^-{3}/.test(line) && /[^-]-{3,20}$/.test(next) && !line.endsWith("-") ? `${line} ${next}` : line;
  const said = /^[-=_*]{2}/.test(ruled) ? RULED.exec(ruled.slice(0, MAX_INTRO_CHARS))?.[1] : undefined;
  if (said === undefined) return false;
  if (SEPARATOR.test(ruled) || (TIMED.test(said) && ADDRESS.test(said))) return true;
  if (ruled !== line || /\d{3}/.test(said)) return false;
  // In any language: a title above a quoted header.
  const below = lines.slice(at + 1, at + 2 + HEADER_BLOCK_LINES);
  return (
    below.filter((other) => isBlockLine(BLOCK_FROM, other) || isBlockLine(BLOCK_OTHER, other)).length >= 2
  );
}

/** Returns whether a quoted header begins here. It begins with its author, or in GMX's answers with its date. */
function isHeaderBlock(lines: readonly string[], at: number): boolean {
  const line = lines[at] ?? "";
  const isDate = isBlockLine(BLOCK_OTHER, line) && /\d/.test(line);
  if (!isBlockLine(BLOCK_FROM, line) && !(isDate && isBlockLine(BLOCK_FROM, lines[at + 1]))) return false;
  const below = lines.slice(at + 1, at + 1 + HEADER_BLOCK_LINES);
  const others = below
    .map((other) => other.slice(0, MAX_INTRO_CHARS))
    .filter((other) => BLOCK_OTHER.test(other));
  const named = (): boolean => [line, ...others].some((one) => one.includes("@"));
  return others.length >= 2 && (others.some((other) => !BLOCK_COMMON.test(other)) || named());
}

function isBlockLine(pattern: RegExp, line = ""): boolean {
  return line.length <= MAX_INTRO_CHARS && pattern.test(line);
}

function isBlank(lines: readonly string[]): boolean {
  return lines.every((line) => line.trim() === "");
}

function joined(lines: readonly string[]): string {
  return lines.join("\n").trim();
}

/** Returns the text below a quoted block at the top. Null if nothing is quoted there or nothing follows. */
function underQuote(lines: readonly string[]): string | null {
  let at = lines.findIndex((line) => line.trim() !== "");
  if (at < 0 || !isQuoted(lines[at] ?? "")) return null;
  while (at < lines.length && (isQuoted(lines[at] ?? "") || (lines[at] ?? "").trim() === "")) at++;
  const below = withoutSignature(lines.slice(at), 0);
  return isBlank(below) ? null : joined(below);
}

/** @param ruled whether a line that is drawn above a quoted message is removed too */
function trimQuotedEnd(lines: readonly string[], ruled: boolean): readonly string[] {
  let end = lines.length;
  const goes = (line: string): boolean =>
    isQuoted(line) || line.trim() === "" || (ruled && /^[-_]{5,200}$/.test(line.trim()));
  while (end > 0 && goes(lines[end - 1] ?? "")) end--;
  return lines.slice(0, end);
}

/**
 * Leaves out a signature with all lines below it, and lines that a device added. Other lines below those stay.
 * @param from first line that may begin one: a body is more than its signature
 */
function withoutSignature(lines: readonly string[], from = 1): readonly string[] {
  const at = lines.findIndex((line, index) => index >= from && beginsSignature(lines, line, index));
  const kept = at < 0 ? lines : lines.slice(0, at);
  const last = kept.findLastIndex((line) => line.trim() !== "");
  return kept.filter((line, index) => index < from || !standsAlone(kept, index, last) || !isFooter(line));
}

function beginsSignature(lines: readonly string[], line: string, index: number): boolean {
  if (!line.startsWith("--") && !line.startsWith("_____")) return false;
  if (SIGNATURE.test(line)) return line.endsWith(" ") || linesBelow(lines, index) <= MAX_SIGNATURE_LINES;
  if (!/^_{5,200}\s*$/.test(line) || linesBelow(lines, index) > MAX_FOOTER_LINES) return false;
  const below = lines.slice(index + 1);
  return isBlank(below) || below.some((other) => /@|:\/\/|unsubscribe|mailing list/i.test(other));
}

/**
 * A sentence may begin like a footer, which has a line to itself between empty lines, or is the last.
 * @param last the last line that is not empty
 */
function standsAlone(lines: readonly string[], index: number, last: number): boolean {
  const isEmpty = (line = ""): boolean => line.trim() === "";
  return isEmpty(lines[index + 1]) && (index === last || isEmpty(lines[index - 1]));
}

/** Counts the lines of text below one, up to one more than any limit. */
function linesBelow(lines: readonly string[], index: number): number {
  let count = 0;
  for (let at = index + 1; at < lines.length && count <= MAX_SIGNATURE_LINES; at++)
    if ((lines[at] ?? "").trim() !== "") count++;
  return count;
}
