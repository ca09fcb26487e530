import { CLICK_PATH, OPEN_PATH } from "../../flows/mime/tracking-links.ts";
import { UNSUBSCRIBE_PATH } from "../../flows/mime/unsubscribe.ts";
import { atMostEvery, type Clock } from "../../core/time/clock.ts";
import { MINUTE_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import { type BeginAnswer, type PendingAnswer, slicesOf, timedStream } from "../pipeline/download.ts";
import { type Answer, raw } from "../routing/answer.ts";
import { pathOf } from "../routing/query.ts";
import { ASSETS_PATH, type UiFile, type UiSource } from "./assets.ts";
import { type Ask, type FirstAnswers, firstAnswers, type NewestEvent } from "./first-answers.ts";

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
  "v1",
  "docs",
  "resend",
  "mcp",
  "ui",
  "llms.txt",
  "llms-full.txt",
  "livez",
  "healthz",
  "readyz",
  "metrics",
  ".well-known",
  ...[OPEN_PATH, CLICK_PATH, UNSUBSCRIBE_PATH].map((path) => path.replaceAll("/", "")),
]);

/** Returns the dashboard's page if the request asks for one of its paths as a browser does, else null. */
export type Page = (request: Request) => Promise<Answer | null>;

/** The content of which `ui/drawing` draws the page. */
type Sheet = Omit<FirstAnswers, "lastEventId"> &
  Record<"program" | "origin" | "path" | "search" | "cookie", string>;

/** Draws the page. Returns its HTML, and what it has read. */
export type Draw = (sheet: Sheet) => Promise<{ html: string; values: Readonly<Record<string, unknown>> }>;

export interface PageDeps {
  clock: Clock;
  answers: BeginAnswer;
  files: UiSource;
  draw: Draw;
  newestEvent: NewestEvent;
  /** The command that runs the program on its machine. The page shows commands. */
  program: string;
  /** Host of the OpenID provider that signs members in. Null: there is none. */
  provider: string | null;
  /** Returns whether the installation has members, whom a mailed link signs in. */
  hasMembers: () => Promise<boolean>;
}

/**
 * Returns the page: the same script for all paths, which shows what the path names, and its first content. No page of another origin
 * can read it.
 */
export function dashboardPage(deps: PageDeps, ask: Ask): Page {
  const contentOf = contentMaker(deps, ask);
  return async (request) => {
    if (!asksForPage(request)) return null;
    const start = head(await deps.files(), request.headers.get("cookie") ?? "");
    const encode = (text: string) => new TextEncoder().encode(text);
    let pending: PendingAnswer | null = null;
    const pieces = async function* () {
      // The browser loads the files while the content is made.
      const content = contentOf(request);
      yield encode(start);
      const { owner, html } = await content;
      pending = deps.answers(owner);
      yield* slicesOf(
        encode(hasRoom(pending, html.length * MAX_CHAR_OCTETS) ? html : body("", await own(deps))),
      );
    };
    const stream = timedStream(deps.clock, pieces(), () => pending?.leave());
    return raw(stream, "text/html; charset=utf-8", {
      "content-security-policy": DASHBOARD_POLICY,
      "referrer-policy": "same-origin",
    });
  };
}

function asksForPage({ method, headers, url }: Request): boolean {
  if (method !== "GET" && method !== "HEAD") return false;
  if (!/\btext\/html\b/i.test(headers.get("accept") ?? "")) return false;
  const [, first = ""] = pathOf(url).split("/");
  return !RESERVED.has(first);
}

/** The script that loads the others. */
const START = `${ASSETS_PATH}start-`;
/** The cookie in which the page keeps the chosen colours. */
const THEME = /(?:^|; )postrider\.theme=(light|dark)(?:;|$)/;

function head(files: readonly UiFile[], cookie: string): string {
  const urls = (extension: string) =>
    files
      .filter(({ name, later }) => later !== true && name.endsWith(extension))
      .map(({ name }) => `${ASSETS_PATH}${name}`);
  const theme = THEME.exec(cookie)?.[1];
  return [
    "<!doctype html>",
    `<html lang="en"${theme === undefined ? "" : ` data-theme="${theme}"`}>`,
    "<head>",
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    "<title>Postrider</title>",
    ...urls(".svg").map((url) => `<link rel="icon" href="${url}">`),
    ...urls(".css").map((url) => `<link rel="stylesheet" href="${url}">`),
    ...urls(".js").map((url) =>
      url.startsWith(START)
        ? `<script type="module" src="${url}"></script>`
        : `<link rel="modulepreload" href="${url}">`,
    ),
    "</head>",
    "",
  ].join("\n");
}

/** Maximum octets of a character in UTF-8. */
const MAX_CHAR_OCTETS = 3;

function hasRoom(pending: PendingAnswer, octets: number): boolean {
  try {
    pending.expect(octets);
    return true;
  } catch {
    return false;
  }
}

/** The body of a page, and whose memory it counts for. */
interface Content {
  owner: string;
  html: string;
}

/** Time between two lines about pages that could not be drawn, milliseconds. */
const LOG_PAUSE_MS = MINUTE_MS;

/** Returns what makes the body of a page. Without first content the script draws it. */
function contentMaker(deps: PageDeps, ask: Ask): (request: Request) => Promise<Content> {
  const { clock, draw, newestEvent, program } = deps;
  const mayTell = atMostEvery(clock, LOG_PAUSE_MS);
  let pages = 0;
  return async (request) => {
    const { origin, pathname: path, search } = new URL(request.url, "http://localhost");
    const cookie = request.headers.get("cookie") ?? "";
    try {
      const first = await firstAnswers(ask, request, clock.now(), newestEvent);
      if (first === null) return { owner: "", html: body("", await own(deps)) };
      const { me, projects, project, lastEventId } = first;
      const { html, values } = await draw({ ...first, program, origin, path, search, cookie });
      const data = { ...(await own(deps)), me, projects, project, values, lastEventId };
      return { owner: me.account.id, html: body(html, data) };
    } catch (error) {
      pages++;
      if (mayTell()) {
        log("http").warn("pages not drawn", { pages, error });
        pages = 0;
      }
      return { owner: "", html: body("", await own(deps)) };
    }
  };
}

/** Returns what a page knows without a session. */
async function own({ program, provider, hasMembers }: PageDeps) {
  return { program, provider, mailsLinks: await hasMembers().catch(() => true) };
}

function body(html: string, data: object): string {
  return `<body><div id="app">${html}</div>\n${dataBlock(data)}</body>\n</html>\n`;
}

/** Returns the data as an element that no browser runs. Without `<`, no text in it can end the element. */
function dataBlock(data: object): string {
  const json = JSON.stringify(data).replaceAll("<", "\\u003c");
  return `<script type="application/json" id="start">${json}</script>`;
}
