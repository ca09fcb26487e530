import { firstChars } from "../../core/text.ts";
import { convert } from "html-to-text";
import { HIDDEN, PLAIN_PAGE } from "./page-text.ts";
import { REORDERING, storedText } from "./stored-text.ts";

export const PREVIEW_CHARS = 200;
/** Maximum characters of HTML that are read for its text. The first screen of a message needs far fewer. */
export const MAX_HTML_CHARS = 64 * 1024;
/** Maximum number of levels of nested elements that are read. Deeper ones would exhaust the stack. */
const MAX_HTML_DEPTH = 100;
/** Maximum number of children of one element that are read. */
const MAX_HTML_CHILDREN = 2000;

const HTML_OPTIONS = {
  ...PLAIN_PAGE,
  selectors: [
    ...PLAIN_PAGE.selectors,
    { selector: "a", options: { ignoreHref: true } },
    { selector: "img", format: "skip" },
    ...HIDDEN,
  ],
  limits: {
    maxInputLength: MAX_HTML_CHARS,
    maxDepth: MAX_HTML_DEPTH,
    maxChildNodes: MAX_HTML_CHILDREN,
    ellipsis: "",
  },
};

/** Returns the readable text of an html, without links and images. Never throws: unreadable html gives "". */
export function htmlText(html: string): string {
  try {
    return storedText(convert(html.slice(0, MAX_HTML_CHARS), HTML_OPTIONS));
  } catch {
    return "";
  }
}

/**
 * Invisible characters among spaces. Senders put rows of them after the first words, so that a preview shows only
 * those. Within words they join letters, so they stay.
 */
const FILLERS =
  /(?<=^|\s)(?:\u034f|[\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200d\u2060-\u2064\u2800\ufeff])+(?=\s|$)/g;
/** A quick check: Latin letters need none of these, and no characters that reorder a line. */
const MAY_FILL = /\u00ad|[^\0-\u034e]/;

/** Returns the first characters of a message's text, or of its html's text, on one line. */
export function previewOf(text: string | null, html: string | null): string {
  const own = (text ?? "").slice(0, PREVIEW_CHARS * 20).trim();
  const source = own !== "" || html === null ? own : htmlText(html);
  // Mostly the beginning has enough, and nothing to leave out.
  const beginning = source.slice(0, 2 * PREVIEW_CHARS);
  const line = MAY_FILL.test(beginning) ? "" : onOneLine(beginning);
  if (line.length > PREVIEW_CHARS) return firstChars(line, PREVIEW_CHARS);
  const filled = MAY_FILL.test(source) ? source.replace(FILLERS, " ").replace(REORDERING, "") : source;
  return firstChars(onOneLine(filled), PREVIEW_CHARS);
}

function onOneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
