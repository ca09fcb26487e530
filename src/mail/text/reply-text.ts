import { htmlText, MAX_HTML_CHARS, previewOf } from "./preview.ts";
import {
  ADDRESS,
  ADDRESS_AT_END,
  BLOCK_COMMON,
  BLOCK_FROM,
  BLOCK_OTHER,
  DATED,
  FOOTERS,
  FORWARD,
  INTRODUCTIONS,
  OPEN_INTRODUCTIONS,
  SEPARATOR,
  SIGNATURE,
  SIGNATURE_START,
  TIMED,
} from "./quote-signs.ts";

/** Characters of a text that are searched for a quoted message. */
export const MAX_REPLY_CHARS = 64 * 1024;
/**
 * Characters of text or html for a preview alone, which is made on the main thread. The worst takes some ten
 * milliseconds.
 */
export const MAX_PREVIEW_READ_CHARS = 16 * 1024;
/** Characters of a line that may begin a quoted message. This limits the cost of each pattern. */
const MAX_INTRO_CHARS = 300;
/** Lines over which mail programs break an introduction such as "On … wrote:". */
const MAX_INTRO_LINES = 3;
/** Lines below a "From:" that are searched for the other lines of a quoted header. */
const HEADER_BLOCK_LINES = 4;
/** Lines of text in a list's footer at most. With more lines below it, its first line belongs to the message. */
const MAX_FOOTER_LINES = 5;
/** Empty lines between an introduction and the lines it introduces. */
const MAX_GAP_LINES = 3;

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

/** The bodies of a mail. */
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
  // Most texts quote nothing: they have no line that could begin a header or end an introduction.
  const anyColon = lines.some((line) => COLON.test(line));
  const anyIntroduces = anyColon && lines.some((line) => /[:：]$/.test(line.trimEnd()));
  for (const [at, line] of lines.entries()) {
    if ((anyColon && isHeaderBlock(lines, at)) || isSeparator(line)) return { at, end: at + 1 };
    const span = anyIntroduces ? introduction(lines, at) : 0;
    if (span > 0) return { at, end: at + span };
  }
  return { at: lines.length, end: lines.length };
}

const COLON = /[:：]/;

function isSeparator(line: string): boolean {
  if (line.includes("--")) return SEPARATOR.test(line.trim().slice(0, MAX_INTRO_CHARS));
  return line.length <= MAX_INTRO_CHARS && COLON.test(line) && FORWARD.test(line.trim());
}

/** Returns the number of lines of the introduction that begins here; 0 if none begins. */
function introduction(lines: readonly string[], at: number): number {
  let said = "";
  for (let span = 1; span <= MAX_INTRO_LINES; span++) {
    const line = (lines[at + span - 1] ?? "").trim();
    if (line === "" || isQuoted(line) || said.length + line.length > MAX_INTRO_CHARS) return 0;
    said = said === "" ? line : `${said} ${line}`;
    if (/[:：]$/.test(line) && introduces(said, (lines[at] ?? "").trim(), quotesBelow(lines, at + span)))
      return span;
  }
  return 0;
}

/**
 * @param first the sign found in its first line
 * @param quotes whether quoted lines follow
 */
function introduces(said: string, first: string, quotes: boolean): boolean {
  const dated = DATED.test(said);
  // "On 1 May, Bob wrote:" may also begin a sentence: the lines after it decide.
  if (!dated && !(quotes && /\d/.test(said))) return false;
  if (INTRODUCTIONS.some((pattern) => pattern.test(said))) return true;
  const begins = /[\p{Nd}@]/u.test(first);
  if (OPEN_INTRODUCTIONS.some((pattern) => pattern.test(said))) return begins;
  // In any language: a line that names an author, or one line right above quoted ones.
  if (ADDRESS_AT_END.test(said) && (quotes || TIMED.test(said))) return begins;
  return dated && quotes && (said === first || (begins && ADDRESS.test(said) && TIMED.test(said)));
}

function quotesBelow(lines: readonly string[], from: number): boolean {
  const below = lines.slice(from, from + MAX_GAP_LINES + 1);
  return isQuoted(below.find((line) => line.trim() !== "") ?? "");
}

/** Returns whether a quoted header begins here. It begins with its author, or in GMX's answers with its date. */
function isHeaderBlock(lines: readonly string[], at: number): boolean {
  const line = lines[at] ?? "";
  if (
    !isBlockLine(BLOCK_FROM, line) &&
    !(isBlockLine(BLOCK_OTHER, line) && isBlockLine(BLOCK_FROM, lines[at + 1]))
  )
    return false;
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

/** A mark before "From " does not quote: relays add it to keep mailbox files readable (RFC 4155). */
function isQuoted(line: string): boolean {
  return line.startsWith(">") && !line.startsWith(">From ");
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

/** @param from first line that may begin one: a text is more than its signature */
function withoutSignature(lines: readonly string[], from = 1): readonly string[] {
  // Most texts have no line that could be a footer.
  let left: Uint32Array | null = null;
  const linesBelow = (index: number): number => {
    left ??= textLinesFrom(lines);
    return left[index + 1] ?? 0;
  };
  // A sentence may begin like a footer. A footer is followed by the end of the text, an empty line or a rule.
  const standsAlone = (index: number): boolean => {
    const below = linesBelow(index);
    const ruled = (lines[index] ?? "").startsWith("__") || (lines[index - 1] ?? "").trim() === "";
    return below === 0 || (ruled && below <= MAX_FOOTER_LINES);
  };
  const at = lines.findIndex(
    (line, index) =>
      index >= from &&
      SIGNATURE_START.test(line) &&
      line.length <= MAX_INTRO_CHARS &&
      (SIGNATURE.test(line.trimEnd()) || (isFooter(line) && standsAlone(index))),
  );
  return at < 0 ? lines : lines.slice(0, at);
}

function isFooter(line: string): boolean {
  return FOOTERS.some((pattern) => pattern.test(line.trimEnd()));
}

/** Counts the lines from each one on that are not empty. */
function textLinesFrom(lines: readonly string[]): Uint32Array {
  const counts = new Uint32Array(lines.length + 1);
  for (let at = lines.length - 1; at >= 0; at--)
    counts[at] = (counts[at + 1] ?? 0) + ((lines[at] ?? "").trim() === "" ? 0 : 1);
  return counts;
}
