import { createHash } from "node:crypto";
import { type Answer, raw } from "../routing/answer.ts";

/** Returns a colour in light and dark. A browser that knows no `light-dark` shows the light one. */
function colour(property: string, light: string, dark: string): string {
  return `${property}:${light};${property}:light-dark(${light},${dark})`;
}

/**
 * The style of pages behind links in messages: one calm column, as the dashboard looks. Names and sentences are a project's, so
 * each block has the direction of its text.
 */
export const LINK_PAGE_STYLE = `body{box-sizing:border-box;margin:0;padding:clamp(16px,10vh,96px) 16px;font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;overflow-wrap:anywhere;${colour("background", "#f8f8fa", "#151519")};${colour("color", "#1d1d24", "#e9e9ec")}}
main{box-sizing:border-box;max-width:32rem;margin:0 auto;padding:24px;border-radius:6px;border:1px solid;${colour("border-color", "#e6e6ea", "#34343b")};${colour("background", "#fff", "#1c1c21")}}
h1,h2,p,dt,dd,li,pre{unicode-bidi:plaintext;text-align:start}
h1{margin:0;font-size:20px;line-height:1.3}
h2{margin:24px 0 0;font-size:15px}
p,ul,dl,pre{margin:12px 0 0}
pre{padding:12px;white-space:pre-wrap;border-radius:6px;border:1px solid;${colour("border-color", "#e6e6ea", "#34343b")}}
dt{font-weight:600}
dd{margin:0;${colour("color", "#4b4b57", "#b6b6be")}}
dl>div{display:grid;grid-template-columns:1fr auto;column-gap:16px;align-items:center;padding:12px 0;border-top:1px solid;${colour("border-color", "#e6e6ea", "#34343b")}}
dl>div:last-child{border-bottom:1px solid;${colour("border-color", "#e6e6ea", "#34343b")}}
dl>div>*{grid-column:1}
dl>div>.act{grid-area:1/2/span 3;color:inherit}
.act form{margin:0}
form{margin:20px 0 0}
form+form{margin-top:12px}
button{min-height:40px;padding:8px 16px;font:inherit;font-weight:500;cursor:pointer;border-radius:6px;border:1px solid;color:#fff;${colour("background", "#5344c4", "#6a5cdc")};${colour("border-color", "#5344c4", "#6a5cdc")}}
button.plain{color:inherit;background:none;${colour("border-color", "#92929c", "#71717c")}}
:focus-visible{outline:2px solid;outline-offset:2px;${colour("outline-color", "#5344c4", "#a79ef0")}}
a{${colour("color", "#4a3bb8", "#b3abf3")}}`;

const STYLE_HASH = createHash("sha256").update(LINK_PAGE_STYLE).digest("base64");

/** Nothing may be loaded, run or framed, and no style counts but ours. A form posts to its own URL. */
const CONTENT_SECURITY_POLICY = `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;

interface PageOptions {
  /** HTML. */
  head?: string;
  headers?: Readonly<Record<string, string>>;
  /** Language of title and content (BCP 47). */
  lang?: string;
}

/** Returns a page without scripts, such as that of a link in a message. `title`, `content` and `head` are HTML. */
export function linkPage(
  title: string,
  content: string,
  { head = "", headers = {}, lang = "en" }: PageOptions = {},
): Answer {
  const html = `<!doctype html>
<html lang="${lang}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><style>${LINK_PAGE_STYLE}</style>${head}<title>${title}</title></head>
<body>${linkPageBody(title, content)}</body>
</html>
`;
  return raw(html, "text/html; charset=utf-8", {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    ...headers,
  });
}

/** Returns what such a page shows. `title` and `content` are HTML. */
export function linkPageBody(title: string, content: string): string {
  return `<main><h1>${title}</h1>${content}</main>`;
}
