import { hrefUrl } from "./href.ts";

/** Links of one mail that are led through us; those beyond stay as they are. Bounds time and growth. */
export const MAX_TRACKED_LINKS = 500;

/** A link with this attribute, whatever its value, stays as it is. */
const NO_TRACK_ATTRIBUTE = "data-no-track";

/** What a reader can follow. `link` and `base` are no links that anybody clicks. */
const LINKS = ["a", "area"].map((name) => `${name}[href]:not([${NO_TRACK_ATTRIBUTE}])`).join(", ");

/** What a mail is marked with. */
export interface Marks {
  /** Address of the picture that tells of an open; null: opens are not tracked. */
  pixelUrl: string | null;
  /** The address in the place of a link's, null where that stays; instead of the function null: no link is touched. */
  linkFor: ((url: string) => string | null) | null;
}

/**
 * The html with its links led through us and the picture at the end of its body; all else stays as it is. Html that
 * cannot be rewritten comes back untouched: a mail that is not tracked is better than one that is not sent.
 */
export function trackHtml(html: string, marks: Marks): string {
  if (marks.pixelUrl === null && marks.linkFor === null) return html;
  try {
    return rewrite(html, marks);
  } catch {
    return html;
  }
}

function rewrite(html: string, { pixelUrl, linkFor }: Marks): string {
  const rewriter = new HTMLRewriter();
  if (linkFor !== null) rewriter.on(LINKS, linkHandler(linkFor));
  if (pixelUrl === null) return rewriter.transform(html);
  const pixel = pixelTag(pixelUrl);
  const place = placePixel(rewriter, pixel, pixelUrl);
  const marked = rewriter.transform(`${html}${pixel}`);
  // Behind a comment, a tag or a text area that nobody closed it is text for the reader, not a picture.
  return place.shown ? marked : rewrite(html, { pixelUrl: null, linkFor });
}

function linkHandler(linkFor: (url: string) => string | null) {
  let left = MAX_TRACKED_LINKS;
  return {
    element(element: HTMLRewriterTypes.Element): void {
      if (left === 0) return;
      const url = hrefUrl(element.getAttribute("href") ?? "");
      const link = url === null ? null : linkFor(url);
      if (link === null) return;
      // The rewriter itself escapes no more than quotes.
      element.setAttribute("href", Bun.escapeHTML(link));
      left--;
    },
  };
}

/**
 * Has the picture put before the end tag of the first body that has one, and the one behind the html taken away then;
 * `shown` tells whether a reader meets either.
 */
function placePixel(rewriter: HTMLRewriter, pixel: string, url: string): { shown: boolean } {
  const place = { shown: false };
  const source = Bun.escapeHTML(url);
  rewriter.on("body", {
    element(element) {
      element.onEndTag((tag) => {
        if (place.shown) return;
        place.shown = true;
        tag.before(pixel, { html: true });
      });
    },
  });
  rewriter.on("img[src]", {
    element(element) {
      if (element.getAttribute("src") !== source) return;
      if (place.shown) element.remove();
      place.shown = true;
    },
  });
  return place;
}

/** An invisible picture. Its style is no `display: none`: some clients load no picture that is not displayed. */
function pixelTag(url: string): string {
  const style = "border:0;width:1px;height:1px;overflow:hidden";
  return `<img src="${Bun.escapeHTML(url)}" alt="" width="1" height="1" style="${style}">`;
}
