import { CLICK_PATH, OPEN_PATH } from "../../flows/send/tracking-links.ts";
import { UNSUBSCRIBE_PATH } from "../../flows/send/unsubscribe.ts";
import type { Clock } from "../../core/time/clock.ts";
import { type Answer, raw } from "../answer.ts";
import { ASSETS_PATH, type UiFile, type UiSource } from "./assets.ts";
import { type Ask, firstAnswers } from "./first-answers.ts";

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

export interface PageDeps {
  clock: Clock;
  files: UiSource;
  /** How a person calls the program on its machine. The page shows commands. */
  program: string;
}

/**
 * Returns the page: the same script for all paths, which shows what the path names, and the first answers that it needs. No page
 * of another origin can read them.
 */
export function dashboardPage({ clock, files, program }: PageDeps, ask: Ask): Page {
  return async (request) => {
    if (!asksForPage(request)) return null;
    const [all, first] = await Promise.all([files(), firstAnswers(ask, request, clock.now())]);
    return raw(shell(all, { program, ...first }), "text/html; charset=utf-8", {
      "content-security-policy": DASHBOARD_POLICY,
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

function shell(files: readonly UiFile[], data: object): string {
  const urls = (extension: string) =>
    files
      .filter(({ name, later }) => later !== true && name.endsWith(extension))
      .map(({ name }) => `${ASSETS_PATH}${name}`);
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
    dataBlock(data),
    "</head>",
    '<body><div id="app"></div></body>',
    "</html>",
    "",
  ].join("\n");
}

/** Returns the data as an element that no browser runs. Without `<`, no text in it can end the element. */
function dataBlock(data: object): string {
  const json = JSON.stringify(data).replaceAll("<", "\\u003c");
  return `<script type="application/json" id="start">${json}</script>`;
}
