import { hrefUrl } from "./text/href.ts";
import { shownAddresses } from "./text/shown-address.ts";

/**
 * Maximum number of links tracked in one message, which bounds time and growth. Further links stay as they are.
 */
export const MAX_TRACKED_LINKS = 500;

/** A link with this attribute, whatever its value, stays as it is. */
const NO_TRACK_ATTRIBUTE = "data-no-track";

/** The elements that a reader can follow. A reader does not click `link` and `base`. */
const LINKS = ["a", "area"].map((name) => `${name}[href]:not([${NO_TRACK_ATTRIBUTE}])`).join(", ");

/** The marks of a tracked mail. */
export interface Marks {
  /** Address of the picture that reports an open; null if opens are not tracked. */
  pixelUrl: string | null;
  /** Returns the new address of a link, or null if it stays. The function is null if links are not tracked. */
  linkFor: ((url: string) => string | null) | null;
}

/**
 * Returns the html with tracked links and with the picture at the end of its body. Everything else stays as it is. Html that we cannot
 * rewrite is returned unchanged: an untracked mail is better than an unsent one.
 */
export function trackHtml(html: string, marks: Marks): string {
  if (marks.pixelUrl === null && marks.linkFor === null) return html;
  try {
    return rewrite(html, marks);
  } catch {
    return html;
  }
}

/**
 * The HTML being rewritten. There is one at a time, because rewriting a string never yields to the event loop.
 */
interface Page {
  linkFor: ((url: string) => string | null) | null;
  linksLeft: number;
  /** The picture, and the style by which it is known. */
  pixel: string;
  style: string;
  /** True if the picture is in a place that a reader's program shows. */
  shown: boolean;
}

/** Rewriters by their marks, made when first needed: making one takes as long as rewriting a message. */
let rewriters: { links: HTMLRewriter; both: HTMLRewriter } | null = null;
let page: Page = { linkFor: null, linksLeft: 0, pixel: "", style: "", shown: false };

function rewrite(html: string, { pixelUrl, linkFor }: Marks): string {
  rewriters ??= { links: markLinks(new HTMLRewriter()), both: placePixel(markLinks(new HTMLRewriter())) };
  const begun: Page = {
    linkFor: linkFor === null ? null : unlessShown(html, linkFor),
    linksLeft: linkFor === null ? 0 : MAX_TRACKED_LINKS,
    pixel: pixelUrl === null ? "" : pixelTag(pixelUrl),
    style: pixelUrl === null ? "" : Bun.escapeHTML(pixelStyle(pixelUrl)),
    shown: false,
  };
  page = begun;
  if (pixelUrl === null) return rewriters.links.transform(html);
  const marked = rewriters.both.transform(`${html}${begun.pixel}`);
  // After an unclosed comment, tag or text area the picture would be text for the reader.
  return begun.shown ? marked : rewrite(html, { pixelUrl: null, linkFor });
}

/** Leaves out the links whose text is an address: one that leads to another host looks like fraud. */
function unlessShown(html: string, linkFor: (url: string) => string | null): (url: string) => string | null {
  const isShown = shownAddresses(html);
  return (url) => (isShown(url) ? null : linkFor(url));
}

function markLinks(rewriter: HTMLRewriter): HTMLRewriter {
  return rewriter.on(LINKS, {
    element(element) {
      if (page.linksLeft === 0) return;
      const url = hrefUrl(element.getAttribute("href") ?? "");
      const link = url === null ? null : (page.linkFor?.(url) ?? null);
      if (link === null) return;
      // The rewriter itself escapes only quotes.
      element.setAttribute("href", Bun.escapeHTML(link));
      page.linksLeft--;
    },
  });
}

/** Puts the picture before the end tag of the first body that has one, and then removes the one after the html. */
function placePixel(rewriter: HTMLRewriter): HTMLRewriter {
  return (
    rewriter
      .on("body", {
        element(element) {
          element.onEndTag((tag) => {
            if (page.shown) return;
            page.shown = true;
            tag.before(page.pixel, { html: true });
          });
        },
      })
      // Only elements of one pixel: each call from the rewriter takes time, and a newsletter has many elements.
      .on(`div[style^="${ONE_PIXEL}"]`, {
        element(element) {
          if (element.getAttribute("style") !== page.style) return;
          if (page.shown) element.remove();
          page.shown = true;
        },
      })
  );
}

const ONE_PIXEL = "width:1px;height:1px;";

/** Returns the style with the picture in the background. Signs that could end its address in CSS are encoded. */
function pixelStyle(url: string): string {
  const encoded = url.replace(/['"()\\\s]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
  return `${ONE_PIXEL}background-image:url(${encoded})`;
}

/**
 * Returns an invisible picture, as the background of an element: filters count `img` elements next to few words as spam that hides
 * its words in pictures. Outlook for Windows shows no backgrounds, so it alone reads an `img`.
 */
function pixelTag(url: string): string {
  const image = `<img src="${Bun.escapeHTML(url)}" alt="" width="1" height="1" style="border:0">`;
  return `<div style="${Bun.escapeHTML(pixelStyle(url))}"><!--[if mso]>${image}<![endif]--></div>`;
}
