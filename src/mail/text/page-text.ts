import type { Formatter } from "html-to-text";

/** Cells of a row are separated, as on the page, although no text is between them. */
const cell: Formatter = (element, walk, builder) => {
  walk(element.children, builder);
  builder.addInline(" ");
};

/** Selectors of hidden elements of a page, such as a preheader or text for programs. They compare styles as written. */
export const HIDDEN = [
  ...["display:none", "display: none", "visibility:hidden", "visibility: hidden"].map(
    (style) => `*[style*="${style}" i]`,
  ),
  "*[hidden]",
].map((selector) => ({ selector, format: "skip" }));

/** Options of html-to-text for the words of a page: lines as long as they are, and rows of tables as lines. */
export const PLAIN_PAGE = {
  wordwrap: false as const,
  formatters: { cell },
  selectors: [
    { selector: "tr", format: "block", options: { leadingLineBreaks: 1, trailingLineBreaks: 1 } },
    ...["td", "th"].map((selector) => ({ selector, format: "cell" })),
    // Headings keep their letters: capitals would not be the author's.
    ...["h1", "h2", "h3", "h4", "h5", "h6"].map((selector) => ({ selector, options: { uppercase: false } })),
  ],
};
