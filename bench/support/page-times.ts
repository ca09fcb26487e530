/** Times of the dashboard's pages in Chromium. */
import type { Browser, BrowserContext, Page } from "playwright-core";
import type { SessionCookie } from "../../test/support/browser.ts";

/** Milliseconds since the navigation began. */
export interface PageTimes {
  /** First text or image on the screen. */
  "first paint ms": number;
  /** The page's content is there. */
  "content ms": number;
  /** The frame with the content has been drawn. */
  "drawn ms": number;
  /** The app runs, if the page has one. Before that, links work but fields and keys do not. */
  "takes input ms": number;
}

/** Time between two looks, which would take time from the page. */
const SETTLE_MS = 300;

/**
 * Notes when an element fits the selector for the first time, and when the frame after that has been drawn. A `–`
 * represents a figure that is not known yet.
 */
const WATCH = `(selector) => {
  const seen = () => [...document.querySelectorAll(selector)].some((one) => one.textContent !== "–");
  const note = () => {
    if (!seen()) return false;
    window.contentAt = performance.now();
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => (window.drawnAt = performance.now());
      port2.postMessage(0);
    });
    return true;
  };
  const observer = new MutationObserver(() => note() && observer.disconnect());
  observer.observe(document, { childList: true, subtree: true, characterData: true });
  new MutationObserver(() => (window.inputAt ??= performance.now())).observe(document, {
    subtree: true,
    attributeFilter: ["data-app"],
  });
}`;

/** Opens a window of a new context, whose cache is empty, in a session. */
export async function coldPage(
  browser: Browser,
  session: SessionCookie,
): Promise<{ page: Page; context: BrowserContext }> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await context.addCookies([session]);
  return { page: await context.newPage(), context };
}

/** Opens a path in a new window with an empty cache. Returns when the content that the selector names was there. */
export async function timeCold(
  browser: Browser,
  url: string,
  session: SessionCookie,
  [path, selector]: readonly [path: string, selector: string],
): Promise<PageTimes> {
  const { page, context } = await coldPage(browser, session);
  await page.addInitScript(`(${WATCH})(${JSON.stringify(selector)})`);
  await page.goto(url + path);
  do await page.waitForTimeout(SETTLE_MS);
  while (!(await page.evaluate<boolean>("window.drawnAt !== undefined")));
  const times = await page.evaluate<PageTimes>(`({
    "first paint ms": performance.getEntriesByName("first-contentful-paint")[0].startTime,
    "content ms": window.contentAt,
    "drawn ms": window.drawnAt,
    "takes input ms": window.inputAt ?? window.contentAt,
  })`);
  await context.close();
  return times;
}

/** Runs a script in an open page. Returns the milliseconds until a frame is drawn in which the condition holds. */
export async function timeStep(page: Page, script: string, condition: string): Promise<number> {
  return page.evaluate<number>(`new Promise((resolve) => {
    const from = performance.now();
    const look = () => ((${condition}) ? resolve(performance.now() - from) : requestAnimationFrame(look));
    ${script};
    requestAnimationFrame(look);
  })`);
}
