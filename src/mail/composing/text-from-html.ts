import { compile, type Formatter } from "html-to-text";
import { HIDDEN, PLAIN_PAGE } from "../text/page-text.ts";
import { storedText } from "../text/stored-text.ts";

/** Largest html that a text part is made from, characters. Hostile html of this size takes half a second, on a worker thread. */
export const MAX_TEXT_SOURCE_CHARS = 512 * 1024;
/** Maximum number of levels of nested elements. A newsletter of nested tables has 40. */
export const MAX_TEXT_SOURCE_DEPTH = 100;
/** Maximum number of children of one element. */
export const MAX_TEXT_SOURCE_CHILDREN = 10_000;

/** A mark for what the library leaves out at a limit. No html can have it: the parser and we remove NUL. */
const LEFT_OUT = "\0";

/** Addresses that mean something outside the page. The rest names places within it, or programs. */
const LINK = /^(?:https?|mailto|tel):/i;

/** Writes a link's address after its words, between the delimiters that RFC 3986 appendix C recommends. */
const link: Formatter = ({ attribs, children }, walk, builder) => {
  walk(children, builder);
  const href = attribs?.["href"]?.trim() ?? "";
  const [only] = children;
  const isShown = children.length === 1 && only?.type === "text" && only.data?.trim() === href;
  if (LINK.test(href) && !isShown) builder.addInline(` <${href}>`, { noWordTransform: true });
};

/** Writes the words that replace a picture. */
const picture: Formatter = ({ attribs }, _, builder) => {
  const words = attribs?.["alt"]?.trim() ?? "";
  if (words !== "") builder.addInline(words, { noWordTransform: true });
};

/** Writes an item of a list. Nested lists are not indented: an indent on each line would multiply the text. */
const item: Formatter = ({ children }, walk, builder) => {
  builder.openBlock({ leadingLineBreaks: 1 });
  builder.addInline("- ");
  walk(children, builder);
  builder.closeBlock({ trailingLineBreaks: 1 });
};

const OPTIONS = {
  ...PLAIN_PAGE,
  formatters: { ...PLAIN_PAGE.formatters, link, picture, item },
  selectors: [
    ...PLAIN_PAGE.selectors,
    { selector: "a", format: "link" },
    { selector: "img", format: "picture" },
    { selector: "li", format: "item" },
    ...["ul", "ol", "blockquote"].map((selector) => ({
      selector,
      format: "block",
      options: { leadingLineBreaks: 1, trailingLineBreaks: 1 },
    })),
    ...HIDDEN,
  ],
  limits: {
    maxInputLength: MAX_TEXT_SOURCE_CHARS,
    maxDepth: MAX_TEXT_SOURCE_DEPTH,
    maxChildNodes: MAX_TEXT_SOURCE_CHILDREN,
    ellipsis: LEFT_OUT,
  },
};

let convert: ReturnType<typeof compile> | undefined;

/**
 * Returns the text part for a message that has html alone, with the addresses of its links. Equal html gives equal
 * text. Returns null if there would be no words, or if the html exceeds a limit: no part is better than half of one.
 */
export function textFromHtml(html: string): string | null {
  if (html.length > MAX_TEXT_SOURCE_CHARS) return null;
  convert ??= compile(OPTIONS);
  const text = convert(html.replaceAll(LEFT_OUT, ""));
  if (text.includes(LEFT_OUT)) return null;
  const stored = storedText(text).trim();
  return stored === "" ? null : `${stored}\n`;
}
