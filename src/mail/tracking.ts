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
  /** The picture, and its address as it is in the source of an image. */
  pixel: string;
  source: string;
  /** True if the picture is in a place that a reader's program shows. */
  shown: boolean;
}

/** Rewriters by their marks, made when first needed: making one takes as long as rewriting a message. */
let rewriters: { links: HTMLRewriter; both: HTMLRewriter } | null = null;
let page: Page = { linkFor: null, linksLeft: 0, pixel: "", source: "", shown: false };

function rewrite(html: string, { pixelUrl, linkFor }: Marks): string {
  rewriters ??= { links: markLinks(new HTMLRewriter()), both: placePixel(markLinks(new HTMLRewriter())) };
  const begun: Page = {
    linkFor: linkFor === null ? null : unlessShown(html, linkFor),
    linksLeft: linkFor === null ? 0 : MAX_TRACKED_LINKS,
    pixel: pixelUrl === null ? "" : pixelTag(pixelUrl),
    source: pixelUrl === null ? "" : Bun.escapeHTML(pixelUrl),
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
      // Only images of one pixel: each call from the rewriter takes time, and a newsletter has many images.
      .on('img[src][width="1"][height="1"]', {
        element(element) {
          if (element.getAttribute("src") !== page.source) return;
          if (page.shown) element.remove();
          page.shown = true;
        },
      })
  );
}

/** Returns an invisible picture. Its style is not `display: none`, because some clients do not load such a picture. */
function pixelTag(url: string): string {
  const style = "border:0;width:1px;height:1px;overflow:hidden";
  return `<img src="${Bun.escapeHTML(url)}" alt="" width="1" height="1" style="${style}">`;
}
