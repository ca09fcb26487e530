import { CLICK_PATH, OPEN_PATH } from "../../flows/send/tracking-links.ts";
import { UNSUBSCRIBE_PATH } from "../../flows/send/unsubscribe.ts";
import { type Answer, raw } from "../answer.ts";
import { ASSETS_PATH, type UiSource } from "./assets.ts";

/**
 * The dashboard loads nothing from other origins and runs no inline script, so text of a message cannot run either
 * (XSS). No other site may frame it (clickjacking).
 */
export const DASHBOARD_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

/** First segments of paths that never belong to the dashboard. */
const RESERVED: ReadonlySet<string> = new Set([
  ...["v1", "docs", "resend", "mcp", "ui", "llms.txt", "llms-full.txt"],
  ...["livez", "healthz", "readyz", "metrics", ".well-known"],
  ...[OPEN_PATH, CLICK_PATH, UNSUBSCRIBE_PATH].map((path) => path.replaceAll("/", "")),
]);

/** Returns the dashboard's page if the request asks for one of its paths as a browser does, else null. */
export type Page = (request: Request) => Promise<Answer | null>;

/** Returns the page: the same for all paths, because the script shows what the path names. */
export function dashboardPage(files: UiSource): Page {
  return async (request) => {
    if (!asksForPage(request)) return null;
    const names = (await files()).map(({ name }) => name);
    return raw(shell(names), "text/html; charset=utf-8", {
      "content-security-policy": DASHBOARD_POLICY,
      "cross-origin-opener-policy": "same-origin",
      "referrer-policy": "same-origin",
    });
  };
}

function asksForPage({ method, headers, url }: Request): boolean {
  if (method !== "GET" && method !== "HEAD") return false;
  if (!/\btext\/html\b/i.test(headers.get("accept") ?? "")) return false;
  const [, first = ""] = new URL(url, "http://localhost").pathname.split("/");
  return !RESERVED.has(first);
}

function shell(names: readonly string[]): string {
  const urls = (extension: string) =>
    names.filter((name) => name.endsWith(extension)).map((name) => `${ASSETS_PATH}${name}`);
  return [
    "<!doctype html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    "<title>Postrider</title>",
    ...urls(".svg").map((url) => `<link rel="icon" href="${url}">`),
    ...urls(".css").map((url) => `<link rel="stylesheet" href="${url}">`),
    ...urls(".js").map((url) => `<script type="module" src="${url}"></script>`),
    "</head>",
    '<body><div id="app"></div></body>',
    "</html>",
    "",
  ].join("\n");
}
