import { type Answer, raw } from "../routing/answer.ts";

/** Nothing may be loaded, run or framed. A form posts to its own URL. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

interface PageOptions {
  /** HTML. */
  head?: string;
  headers?: Readonly<Record<string, string>>;
  /** Language of title and content (BCP 47). */
  lang?: string;
}

/** Returns a page without style and scripts, such as that of a link in a message. `content` and `head` are HTML. */
export function linkPage(
  title: string,
  content: string,
  { head = "", headers = {}, lang = "en" }: PageOptions = {},
): Answer {
  const html = `<!doctype html>
<html lang="${lang}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">${head}<title>${title}</title></head>
<body><h1>${title}</h1>${content}</body>
</html>
`;
  return raw(html, "text/html; charset=utf-8", {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    ...headers,
  });
}
