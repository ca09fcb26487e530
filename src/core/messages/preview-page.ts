export type PreviewTheme = "light" | "dark";

/** Maximum characters of HTML that a preview shows. Browsers get slow with more. */
export const MAX_PREVIEW_CHARS = 1024 * 1024;

/**
 * Maximum number of elements open at once. Browsers search all of them at each tag, so 100 000 take them a minute.
 * Messages of real senders have fewer than 100.
 */
export const MAX_OPEN_ELEMENTS = 1000;

/**
 * Maximum characters of the message's own images in a page, as base64. One image may be used a thousand times.
 */
export const MAX_INLINE_CHARS = 8 * 1024 * 1024;

/** A reference to a part of the message (RFC 2392), where html or CSS can have a URL. */
const CID = /(["'=(]\s*)cid:([^\s"'<>()\\]{1,512})/gi;

/**
 * Tags that act although the page may load and run nothing. A link opens connections (`preconnect`), and so does a frame
 * before the policy refuses it. Meta sets a referrer policy or allows DNS prefetching. A base changes what links mean. A
 * name follows its `<` directly, in any case, so no text makes such a tag without this form.
 */
const ACTING_TAG = /<(\/?)(link|meta|base|i?frame|fencedframe|portal|object|embed|applet)(?=[\s/>])/gi;
/** An attribute that would send the URL of the preview to the host of an image. */
const ACTING_ATTRIBUTE = /referrerpolicy/gi;

/**
 * `target` makes each link open a window, which the page may not, so links are inert. Colours are those of a browser,
 * for a message that sets none.
 */
const HEADS: Readonly<Record<PreviewTheme, string>> = {
  light: headOf("light", "#fff", "#111"),
  dark: headOf("dark", "#16181c", "#e6e6e6"),
};

function headOf(scheme: PreviewTheme, background: string, colour: string): string {
  return `<!doctype html><meta charset="utf-8"><base target="_blank"><style>:root{color-scheme:${scheme};background:${background};color:${colour};font:14px/1.5 system-ui,sans-serif}body{margin:16px;overflow-wrap:anywhere}img{max-width:100%}</style>`;
}

const CUT_NOTE = "<p><em>The message is too large for a preview, which shows its first part.</em></p>";

/** An image that is not shown. If the page asked for its id, the policy would refuse that each time. */
const NO_IMAGE = "data:,";

/** A start or end tag with its name. */
const TAG = /<(\/?)([a-z][^\s/>]*)/gi;
/** Elements without an end tag, or whose end tag may be left out, because the next such element ends them. */
const ENDS_ITSELF =
  /^(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr|p|li|d[td]|t[dhr]|tbody|thead|tfoot|option|body|html|head)$/i;

/** Returns the part of a message's html that a preview shows: all of it, unless it is longer or deeper than any mail. */
export function shownPart(html: string): string {
  const start = html.slice(0, MAX_PREVIEW_CHARS);
  let open = 0;
  for (const { 1: end = "", 2: name = "", index } of start.matchAll(TAG)) {
    if (ENDS_ITSELF.test(name)) continue;
    open = end === "" ? open + 1 : Math.max(0, open - 1);
    if (open > MAX_OPEN_ELEMENTS) return start.slice(0, index);
  }
  return start;
}

/** Returns the content ids that the html refers to, in order, each once. */
export function contentIdsIn(html: string): string[] {
  return [...new Set([...html.matchAll(CID)].map(([, , id = ""]) => decodedId(id)))];
}

/** Returns the content id that a URL names. It may be percent-encoded, and html may have written its `&` as an entity. */
function decodedId(text: string): string {
  const plain = text.replaceAll("&amp;", "&");
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
}

/** A page as the reader sees it. */
export interface Previewed {
  /** The part of the html that is shown. */
  html: string;
  /** True if there is more. */
  cut: boolean;
  /** `data:` URLs of the message's own images by content id. */
  images: ReadonlyMap<string, string>;
}

/** The sign of html with colours for a dark page: a meta tag, a property or a media query. */
const DECLARES_DARK = /color-scheme/i;

/**
 * Returns a page that shows the html of a message. Html that does not declare colours for a dark page stays light, as in mail
 * programs: its own dark text would be unreadable. It must be served with a policy
 * that lets it load and run nothing.
 */
export function previewPage({ html, cut, images }: Previewed, theme: PreviewTheme): string {
  let left = MAX_INLINE_CHARS;
  const body = html
    .replace(ACTING_TAG, "<$1inert-$2")
    .replace(ACTING_ATTRIBUTE, "inert-$&")
    .replace(CID, (_whole, before: string, id: string) => {
      const image = images.get(decodedId(id)) ?? NO_IMAGE;
      if (image.length > left) return `${before}${NO_IMAGE}`;
      left -= image.length;
      return `${before}${image}`;
    });
  const shown = theme === "dark" && DECLARES_DARK.test(html) ? "dark" : "light";
  return `${HEADS[shown]}${cut ? CUT_NOTE : ""}${body}`;
}
