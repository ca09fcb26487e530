import { firstChars } from "../../core/first-chars.ts";
import { convert, type Formatter } from "html-to-text";
import { storedText } from "../stored-text.ts";

/** Characters of a preview. */
export const PREVIEW_CHARS = 200;
/** Characters of an html that are read for its text; the first screen of a mail lies well within. */
export const MAX_HTML_CHARS = 64 * 1024;
/** Nested elements that are followed; deeper ones would exhaust the stack. */
const MAX_HTML_DEPTH = 100;
/** Children of one element that are read. */
const MAX_HTML_CHILDREN = 2000;

/** Cells of a row stand apart, as on the page, though nothing is written between them. */
const cell: Formatter = (element, walk, builder) => {
  walk(element.children, builder);
  builder.addInline(" ");
};

const HTML_OPTIONS = {
  wordwrap: false as const,
  formatters: { cell },
  selectors: [
    { selector: "a", options: { ignoreHref: true } },
    { selector: "img", format: "skip" },
    { selector: "tr", format: "block", options: { leadingLineBreaks: 1, trailingLineBreaks: 1 } },
    ...["td", "th"].map((selector) => ({ selector, format: "cell" })),
    // As they are written: capitals shout, and are nobody's words.
    ...["h1", "h2", "h3", "h4", "h5", "h6"].map((selector) => ({ selector, options: { uppercase: false } })),
  ],
  limits: {
    maxInputLength: MAX_HTML_CHARS,
    maxDepth: MAX_HTML_DEPTH,
    maxChildNodes: MAX_HTML_CHILDREN,
    ellipsis: "",
  },
};

/** The readable text of an html, without links and images. Never throws; what cannot be read gives "". */
export function htmlText(html: string): string {
  try {
    return storedText(convert(html.slice(0, MAX_HTML_CHARS), HTML_OPTIONS));
  } catch {
    return "";
  }
}

/** The first characters of a mail's text, or of its html's text, on one line. */
export function previewOf(text: string | null, html: string | null): string {
  const own = (text ?? "").slice(0, PREVIEW_CHARS * 20).trim();
  const source = own !== "" || html === null ? own : htmlText(html);
  const line = source.replace(/\s+/g, " ").trim();
  return firstChars(line, PREVIEW_CHARS);
}
