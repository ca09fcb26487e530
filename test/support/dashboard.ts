import { afterAll, beforeAll, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import {
  actionsOn,
  BROWSER_MS,
  CHROMIUM,
  startBrowser,
  type TestBrowser,
  type Visit,
  type VisitOptions,
} from "./browser.ts";
import { startService, type TestService } from "./service.ts";

/** A test that needs a browser. It is skipped if there is none. */
export const browserTest = test.skipIf(CHROMIUM === null);

/** A window in which every column of a list fits. */
export const WIDE = { width: 1440, height: 900 };

interface Opening {
  /** Default: a service with the settings of `startService`. */
  start?: () => Promise<TestService>;
  /** Default: `CHROMIUM`. */
  program?: typeof CHROMIUM;
  /** Makes what the window is to show when it opens. */
  prepare?: () => Promise<unknown>;
  /** Path that the shared window opens. Absent: each test opens its own windows. */
  path?: string;
  /** Key that signs the shared window in. Default: the key of the account. */
  as?: "accountKey" | "projectKey";
  /** Default: the size of every window of `startBrowser`. */
  viewport?: NonNullable<VisitOptions["viewport"]>;
}

/** The service and the browser of one test file. Available from `prepare` on, and the shared window from the first test on. */
export interface Dashboard extends ReturnType<typeof actionsOn> {
  readonly service: TestService;
  readonly browser: TestBrowser;
  /** The window that the tests share. */
  readonly visit: Visit;
  readonly page: Page;
  /** Opens a path in the shared window. */
  go(path: string): ReturnType<Page["goto"]>;
}

/** Starts the service and the browser before the file's tests, and stops them after. */
export function dashboard({
  start = startService,
  program,
  prepare,
  path,
  as,
  viewport,
}: Opening = {}): Dashboard {
  setDefaultTimeout(BROWSER_MS);
  let running: { service: TestService; browser: TestBrowser } | null = null;
  let visit: Visit | null = null;
  beforeAll(async () => {
    if (CHROMIUM === null) return;
    const [service, browser] = await Promise.all([start(), startBrowser(program)]);
    running = { service, browser };
    await prepare?.();
    if (path === undefined) return;
    const key = service[as ?? "accountKey"];
    visit = await browser.visit(service.url, path, { key, ...(viewport === undefined ? {} : { viewport }) });
  });
  afterAll(async () => {
    await running?.browser.close();
    await running?.service.stop();
  });

  const opened = <Value>(value: Value | null): Value => {
    if (value === null) throw new Error("it is open in tests only");
    return value;
  };
  const ui: Dashboard = {
    get service() {
      return opened(running).service;
    },
    get browser() {
      return opened(running).browser;
    },
    get visit() {
      return opened(visit);
    },
    get page() {
      return ui.visit.page;
    },
    go: (to) => ui.page.goto(ui.service.url + to),
    ...actionsOn(() => ui.page),
  };
  return ui;
}
