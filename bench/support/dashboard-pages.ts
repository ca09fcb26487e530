/** The parts of `bench/dashboards.ts` that need Chromium. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { systemClock } from "../../src/clock.ts";
import { openDb } from "../../src/store/engine/client.ts";
import { sessionCookie } from "../../test/support/browser.ts";
import { fillLists } from "./fill-lists.ts";
import { PROJECTS, RARE } from "./listed-messages.ts";
import { coldPage, type PageTimes, timeCold, timeStep } from "./page-times.ts";
import { DOMAIN, prepareData, type Service, startService } from "./service.ts";
import { median } from "./table.ts";

/** Medians by row and column. */
export type Figures = Record<string, Record<string, number>>;

/** A page that the bench opens: its path, and the selector of its content. */
type Opened = readonly [name: string, path: string, selector: string];

/** An answer with a few words, from the same server: what the browser itself takes. */
const FLOOR: Opened = ["nearly empty page", "/livez", "body"];
const PAGES: readonly Opened[] = [
  ["Home", "/", ".counter strong"],
  ["Messages", "/messages", ".list .row"],
  ["Inboxes", "/inboxes", ".list .row, .empty"],
];
const COLUMNS = ["first paint ms", "content ms", "drawn ms", "takes input ms"] as const;
const WARM_VISITS = 2;

/** Opens pages with an empty cache in turns. Returns the medians of their times. */
export async function measureFirst(
  browser: Browser,
  { url }: Service,
  key: string,
  visits: number,
): Promise<Figures> {
  const session = await sessionCookie(url, key);
  const times = new Map<string, PageTimes[]>();
  for (let visit = -WARM_VISITS; visit < visits; visit++)
    for (const [name, path, selector] of [FLOOR, ...PAGES]) {
      const taken = await timeCold(browser, url, session, [path, selector]);
      if (visit >= 0) times.set(name, [...(times.get(name) ?? []), taken]);
    }
  return mediansOf(times);
}

function mediansOf(times: ReadonlyMap<string, readonly PageTimes[]>): Figures {
  return Object.fromEntries(
    [...times].map(([name, list]) => [
      name,
      Object.fromEntries(COLUMNS.map((column) => [column, median(list.map((one) => one[column]))])),
    ]),
  );
}

/** A data folder with a project of so many messages. Made once if the bench keeps its folder. */
export async function manyMessages(home: string, count: number): Promise<{ folder: string; key: string }> {
  const parent = join(home, `dashboard-${count}`);
  const file = join(parent, "made.json");
  if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8"));
  mkdirSync(parent, { recursive: true });
  const { accountKey, folder } = await prepareData(parent);
  const db = await openDb(systemClock, {
    url: `file:${join(folder, "postrider.db")}`,
    authToken: null,
    syncUrl: null,
  });
  const account = await db.first<{ id: string }>("SELECT id FROM accounts");
  await fillLists(db, account?.id ?? "", count);
  await db.close();
  const service = await startService(folder, { ROLES: "api" });
  const made = await fetch(`${service.url}/v1/api-keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${accountKey}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "Bench", senderId: PROJECTS[0], scopes: [] }),
  });
  if (!made.ok) throw new Error(`no key: ${await made.text()}`);
  const { secret } = (await made.json()) as { secret: string };
  await service.child.end();
  const prepared = { folder, key: secret };
  writeFileSync(file, JSON.stringify(prepared));
  return prepared;
}

const ROWS = "document.querySelectorAll('.list .row').length";
const FIRST_ROW = "document.querySelector('.list .row')?.textContent";
/** Steps in the list, each from a page that shows it unfiltered: what is done, and what the list then shows. */
const STEPS: readonly (readonly [name: string, script: string, condition: string])[] = [
  [
    "status chosen",
    "document.querySelector('.views a[href*=bounced]').click()",
    `location.search.includes("bounced") && document.querySelector(".list[aria-busy=false]") && ${ROWS} > 10 && ${FIRST_ROW}.includes("Bounced")`,
  ],
  [
    "search of a word in three subjects",
    `const field = document.querySelector("[data-search]");
     field.value = "${RARE.word}";
     field.dispatchEvent(new Event("input", { bubbles: true }))`,
    `${ROWS} === 3`,
  ],
  [
    "message opened",
    "document.querySelector('.list .row').click()",
    "document.querySelector('.detail h2') !== null",
  ],
  [
    "scrolled by 40 rows",
    "window.scrollTarget = document.querySelector('.list-scroll').scrollTop += 40 * 36",
    `[...document.querySelectorAll(".list .row")].some((row) => {
       const { top, bottom } = row.getBoundingClientRect();
       const box = document.querySelector(".list-scroll").getBoundingClientRect();
       return top <= box.bottom - 40 && bottom >= box.bottom - 80;
     })`,
  ],
];
/** Rows to scroll through. */
const SCROLLS = 50;

/**
 * Sends a message, which is then the newest of the list. All other messages have a row in the list, and no content
 * to open.
 */
async function sendNewest(url: string, key: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const me = (await (await fetch(`${url}/v1/me`, { headers })).json()) as { service: { domain: string } };
  const [from, to] = [`a@onboarding.${me.service.domain}`, `delivered@simulator.${me.service.domain}`];
  const body = JSON.stringify({ from, to, subject: "Newest", text: "x" });
  const sent = await fetch(`${url}/v1/emails`, { method: "POST", headers, body });
  if (!sent.ok) throw new Error(`not sent: ${await sent.text()}`);
}

/** Opens the list of very many messages, searches, filters and scrolls. */
export async function measureList(
  browser: Browser,
  { url }: Service,
  key: string,
  visits: number,
): Promise<Figures> {
  const session = await sessionCookie(url, key);
  await sendNewest(url, key);
  const [, path, selector] = PAGES[1] ?? FLOOR;
  const cold = new Map<string, PageTimes[]>([["list, opened first", []]]);
  for (let visit = -WARM_VISITS; visit < visits; visit++) {
    const taken = await timeCold(browser, url, session, [path, selector]);
    if (visit >= 0) cold.get("list, opened first")?.push(taken);
  }
  const figures = mediansOf(cold);
  const { page, context } = await coldPage(browser, session);
  for (const [name, script, condition] of STEPS) {
    const taken: number[] = [];
    if (!name.startsWith("scrolled"))
      for (let visit = 0; visit < visits; visit++) {
        await page.goto(`${url}/messages`);
        await page.locator("#app[data-app] .list .row").first().waitFor();
        taken.push(await timeStep(page, script, condition));
      }
    else {
      await page.goto(`${url}/messages`);
      await page.locator("#app[data-app] .list .row").first().waitFor();
      for (let step = 0; step < SCROLLS; step++) taken.push(await timeStep(page, script, condition));
    }
    figures[name] = { "drawn ms": median(taken), "slowest ms": Math.max(...taken) };
  }
  await page.goto(`${url}/live`);
  const back: number[] = [];
  for (let visit = 0; visit < visits; visit++) {
    await page.locator(".sidebar a[href='/live']").click();
    await page.waitForTimeout(100);
    const open = "document.querySelector(\".sidebar a[href='/messages']\").click()";
    back.push(await timeStep(page, open, `${ROWS} > 10`));
  }
  figures["list, opened from another page"] = { "drawn ms": median(back), "slowest ms": Math.max(...back) };
  await context.close();
  return figures;
}

/** Sends messages one by one. Returns the time from each request until its event is on the screen, of two pages. */
export async function measureEvents(
  browser: Browser,
  { url }: Service,
  key: string,
  count: number,
): Promise<Figures> {
  const session = await sessionCookie(url, key);
  const figures: Figures = {};
  for (const [name, path] of [
    ["event on Live", "/live"],
    ["message in the list", "/messages"],
  ] as const) {
    const { page, context } = await coldPage(browser, session);
    await page.goto(url + path);
    await page.locator(".live-dot.live").first().waitFor();
    const taken: number[] = [];
    for (let at = 0; at < count; at++) {
      const subject = `Seen ${Bun.randomUUIDv7()}`;
      const send = `delete window.sentId; fetch("/v1/emails", { method: "POST",
        headers: { "content-type": "application/json", authorization: "Bearer ${key}" },
        body: JSON.stringify({ from: "a@${DOMAIN}", to: "b@d1.example", subject: "${subject}", text: "x" }),
      }).then((answer) => answer.json()).then(({ id }) => { window.sentId = id; })`;
      taken.push(
        await timeStep(page, send, `document.querySelector('.row[href*="/' + window.sentId + '"]')`),
      );
      await page.waitForTimeout(EVENT_PAUSE_MS);
    }
    figures[name] = { "drawn ms": median(taken), "slowest ms": Math.max(...taken) };
    await context.close();
  }
  return figures;
}

/** Longer than a page waits between two reads, so that each event meets a page at rest. */
const EVENT_PAUSE_MS = 400;
