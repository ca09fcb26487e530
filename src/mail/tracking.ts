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

/** The html that is being rewritten. One at a time: rewriting a string takes no turn of the event loop. */
interface Page {
  linkFor: ((url: string) => string | null) | null;
  linksLeft: number;
  /** The picture, and its address as the source of an image spells it. */
  pixel: string;
  source: string;
  /** Whether a reader meets the picture. */
  shown: boolean;
}

/** Rewriters by what they mark, made when first needed: making one takes as long as rewriting a mail. */
let rewriters: { links: HTMLRewriter; both: HTMLRewriter } | null = null;
let page: Page = { linkFor: null, linksLeft: 0, pixel: "", source: "", shown: false };

function rewrite(html: string, { pixelUrl, linkFor }: Marks): string {
  rewriters ??= { links: markLinks(new HTMLRewriter()), both: placePixel(markLinks(new HTMLRewriter())) };
  const begun: Page = {
    linkFor,
    linksLeft: linkFor === null ? 0 : MAX_TRACKED_LINKS,
    pixel: pixelUrl === null ? "" : pixelTag(pixelUrl),
    source: pixelUrl === null ? "" : Bun.escapeHTML(pixelUrl),
    shown: false,
  };
  page = begun;
  if (pixelUrl === null) return rewriters.links.transform(html);
  const marked = rewriters.both.transform(`${html}${begun.pixel}`);
  // Behind a comment, a tag or a text area that nobody closed it is text for the reader, not a picture.
  return begun.shown ? marked : rewrite(html, { pixelUrl: null, linkFor });
}

function markLinks(rewriter: HTMLRewriter): HTMLRewriter {
  return rewriter.on(LINKS, {
    element(element) {
      if (page.linksLeft === 0) return;
      const url = hrefUrl(element.getAttribute("href") ?? "");
      const link = url === null ? null : (page.linkFor?.(url) ?? null);
      if (link === null) return;
      // The rewriter itself escapes no more than quotes.
      element.setAttribute("href", Bun.escapeHTML(link));
      page.linksLeft--;
    },
  });
}

/** Has the picture put before the end tag of the first body that has one, and the one behind the html taken away then. */
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
      // Not every image: calling out of the rewriter takes its time, and a newsletter has many.
      .on('img[src][width="1"][height="1"]', {
        element(element) {
          if (element.getAttribute("src") !== page.source) return;
          if (page.shown) element.remove();
          page.shown = true;
        },
      })
  );
}

/** An invisible picture. Its style is no `display: none`: some clients load no picture that is not displayed. */
function pixelTag(url: string): string {
  const style = "border:0;width:1px;height:1px;overflow:hidden";
  return `<img src="${Bun.escapeHTML(url)}" alt="" width="1" height="1" style="${style}">`;
}
