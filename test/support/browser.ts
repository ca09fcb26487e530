import { type Browser, type BrowserContext, chromium, type Page, type Request } from "playwright-core";

/** The complete browser, which shows PDF files; null if it is not installed. */
export const COMPLETE_CHROMIUM = Bun.which("chromium");

/**
 * Debian's Chromium without windows and extensions, which takes two thirds of the processor time of the complete one, or that one.
 * Null if neither is installed. Then the tests that need a browser are skipped.
 */
export const CHROMIUM = Bun.which("chromium-headless-shell") ?? COMPLETE_CHROMIUM;

/** Milliseconds: a browser and the service start, and on a busy machine pages take seconds. */
export const BROWSER_MS = 90_000;
/** Time for one action of a page, milliseconds. */
const ACTION_MS = 30_000;

const ARGS = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // Without a graphics card, OpenGL in software costs a fifth of the time of a page.
  "--disable-software-rasterizer",
  "--disable-gpu-rasterization",
  "--disable-gpu-compositing",
  // The browser resolves no name, so a page that requests another host reaches none.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];

/** One window with its own cookies, and what went wrong in it. */
export interface Visit {
  page: Page;
  context: BrowserContext;
  faults: Faults;
}

export interface Faults {
  /** Requests that the pages' Content-Security-Policy refused: directive and blocked URL. */
  violations: string[];
  /** Requested URLs of other origins. */
  foreign: string[];
  /** Errors that no script caught. */
  errors: string[];
}

export const NO_FAULTS: Faults = { violations: [], foreign: [], errors: [] };

export interface VisitOptions {
  /** Signs in with this key first, or has the session that another window has opened. */
  key?: string;
  session?: SessionCookie;
  /** Default: 1280 × 800. */
  viewport?: { width: number; height: number };
  colorScheme?: "light" | "dark";
}

/** A running Chromium. */
export interface TestBrowser {
  /** Opens a path of the service in a new window. */
  visit(url: string, path: string, options?: VisitOptions): Promise<Visit>;
  close(): Promise<void>;
}

/** Starts Chromium. Only root needs to switch off its sandbox. */
export async function launchChromium(program = CHROMIUM): Promise<Browser> {
  if (program === null) throw new Error("chromium is not installed");
  const args = process.getuid?.() === 0 ? [...ARGS, "--no-sandbox"] : ARGS;
  return chromium.launch({ executablePath: program, args, timeout: BROWSER_MS });
}

/** Starts Chromium for a test. */
export async function startBrowser(program = CHROMIUM): Promise<TestBrowser> {
  const browser = await launchChromium(program);
  return {
    async visit(url, path, { key, session, ...options } = {}) {
      const visit = await openWindow(browser, url, options);
      if (session !== undefined) await visit.context.addCookies([session]);
      if (key !== undefined) await signIn(visit.context, url, key);
      await visit.page.goto(`${url}${path}`);
      return visit;
    },
    close: () => browser.close(),
  };
}

async function openWindow(browser: Browser, url: string, options: VisitOptions): Promise<Visit> {
  // A browser with a window lets a page write what its reader copies.
  const permissions = ["clipboard-write"];
  const context = await browser.newContext({
    permissions,
    viewport: { width: 1280, height: 800 },
    ...options,
  });
  context.setDefaultTimeout(ACTION_MS);
  const faults: Faults = { violations: [], foreign: [], errors: [] };
  const origin = new URL(url).origin;
  const note = (request: Request): void => {
    const asked = new URL(request.url());
    // A URL such as `data:` has the origin `null` and asks no host.
    if (asked.origin !== "null" && asked.origin !== origin) faults.foreign.push(request.url());
  };
  context.on("requestfinished", note);
  context.on("requestfailed", (request) => {
    // Chromium also reports requests that a page's policy, or the rules for its element, kept from being made.
    if (!/^(?:csp|origin)$/.test(request.failure()?.errorText ?? "")) note(request);
  });
  context.on("weberror", (error) => void faults.errors.push(String(error.error())));
  const page = await context.newPage();
  waitsForApp(page);
  await page.exposeFunction("tellViolation", (text: string) => void faults.violations.push(text));
  // Runs in every frame before its own scripts, except in frames that may run none.
  await page.addInitScript(
    "addEventListener('securitypolicyviolation', (event) => tellViolation(event.violatedDirective + ' ' + event.blockedURI))",
  );
  return { page, context, faults };
}

/** Makes the navigations of a window wait until the dashboard takes input. A page that the server has drawn shows its text before. */
function waitsForApp(page: Page): void {
  const ready = async <Answer>(answer: Promise<Answer>): Promise<Answer> => {
    await answer;
    await page.waitForSelector("#app[data-app], html:not(:has(#app))", { state: "attached" });
    return answer;
  };
  const { goto, reload } = page;
  page.goto = (...options) => ready(goto.apply(page, options));
  page.reload = (...options) => ready(reload.apply(page, options));
}

export type SessionCookie = Parameters<BrowserContext["addCookies"]>[0][number];

/** Signs the window in as the dashboard does, and keeps the cookie. */
async function signIn(context: BrowserContext, url: string, key: string): Promise<void> {
  await context.addCookies([await sessionCookie(url, key)]);
}

/** Opens a session as the dashboard does. Returns its cookie. */
export async function sessionCookie(url: string, key: string): Promise<SessionCookie> {
  const answer = await fetch(`${url}/ui/session`, {
    method: "POST",
    headers: { origin: new URL(url).origin, "x-postrider-ui": "1", "content-type": "application/json" },
    body: JSON.stringify({ key }),
  });
  const [name = "", value = ""] = (answer.headers.get("set-cookie") ?? "").split(";", 1)[0]?.split("=") ?? [];
  if (answer.status !== 204 || value === "")
    throw new Error(`sign-in: ${answer.status} ${await answer.text()}`);
  return { name, value, url, httpOnly: true, sameSite: "Strict" };
}

/** Returns what a person does on a page that is opened later: reads, presses buttons of the page or of its window, follows links and fills in fields. */
export function actionsOn(page: () => Page) {
  return {
    see: (text: string | RegExp, exact = false) => page().getByText(text, { exact }).first().waitFor(),
    press: (name: string | RegExp) => page().getByRole("button", { name }).first().click(),
    inDialog: (name: string) => page().getByRole("dialog").getByRole("button", { name, exact: true }).click(),
    follow: (name: string | RegExp) => page().getByRole("link", { name }).first().click(),
    fill: (label: string, text: string) => page().getByLabel(label, { exact: true }).fill(text),
  };
}

/** Returns the labels of the fields that the page asks for, in their order. */
export function askedFields(page: Page): Promise<string[]> {
  return page.locator("main label").allTextContents();
}

/** Returns the label of the field that takes what a person types; null if there is none. */
export function focusedField(page: Page): Promise<unknown> {
  return page.evaluate("document.activeElement.labels?.[0]?.textContent ?? null");
}
