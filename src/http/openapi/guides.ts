import { createHash } from "node:crypto";
import type { Route } from "../routing/route.ts";
import { type DocPage, headingOf, listItem, textRoute, withServedLinks } from "./llms.ts";

const STYLE = `:root{color-scheme:light dark;font:15px/1.55 system-ui,sans-serif}
body{max-width:46rem;margin:0 auto;padding:16px}
nav{display:flex;gap:16px;flex-wrap:wrap;font-size:13px}
h1,h2,h3{line-height:1.25}h1 a,h2 a,h3 a,h4 a{color:inherit;text-decoration:none}
code,pre{font:13px/1.5 ui-monospace,monospace}
pre{overflow-x:auto;padding:12px;border:1px solid #8886;border-radius:6px}
table{display:block;overflow-x:auto;border-collapse:collapse}
th,td{padding:6px 10px;border:1px solid #8886;text-align:left;vertical-align:top}`;

/** The pages load and run nothing. The style sheet is named by its hash. */
const HEADERS = {
  "content-security-policy": `default-src 'none'; style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  "referrer-policy": "no-referrer",
};

/** Returns `/docs/guide`, the list of the guides, and `/docs/guide/<name>`, each guide as a page that browsers show. */
export function guideRoutes(pages: readonly DocPage[]): Route[] {
  const list = pages.map((page) => listItem(page, `/docs/guide/${page.name}`));
  const guides = pages.map(({ name, text }) =>
    pageRoute(`/docs/guide/${name}`, `guide-${name}`, "Get a guide as a page", () => asGuide(text)),
  );
  const index = ["# Guides", ...list].join("\n\n");
  return [pageRoute("/docs/guide", "guideIndex", "Get the list of the guides", () => index), ...guides];
}

function pageRoute(path: string, operationId: string, summary: string, make: () => string): Route {
  return textRoute(path, operationId, summary, "text/html; charset=utf-8", () => htmlPage(make()), HEADERS);
}

/** Returns the Markdown of a guide whose links lead to other guides. A picture becomes its description. */
function asGuide(page: string): string {
  return withServedLinks(page)
    .replace(/\]\(\.\.\/llms\.txt[^)]*\)/g, "](/docs/guide)")
    .replace(/!\[([^\]]*)\]\([^)]*\)/g, "*$1*")
    .replace(/\]\(([\w-]+)\.md(#[^)]*)?\)/g, "](/docs/guide/$1$2)");
}

function htmlPage(markdown: string): string {
  const body = Bun.markdown.html(markdown, {
    headings: { ids: true },
    noHtmlBlocks: true,
    noHtmlSpans: true,
  });
  const nav = `<nav><a href="/">Dashboard</a><a href="/docs/guide">Guides</a><a href="/docs">API reference</a></nav>`;
  const head = `<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${Bun.escapeHTML(headingOf(markdown))} · Postrider</title>`;
  return `<!doctype html><html lang="en"><head>${head}<style>${STYLE}</style></head><body>${nav}<main>${body}</main></body></html>`;
}
