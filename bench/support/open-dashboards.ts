/** Dashboards that people keep open while the service works. */
import type { Browser, CDPSession } from "playwright-core";
import { launchChromium, sessionCookie } from "../../test/support/browser.ts";
import { useCores } from "./cores.ts";
import { familyOf } from "./process-family.ts";

/** Half of the dashboards show Messages, half Home. */
const PATHS = ["/messages", "/"] as const;
const LIVE = "document.querySelector('.live-dot.live') !== null";
const LOOK_MS = 100;
const LIVE_LIMIT_MS = 60_000;

/**
 * Opens that many dashboards in Chromium, each visible and in its own profile, as for as many people. Returns a
 * function that closes them, once all follow the project's events. The browser's network is not watched: that would
 * cost more than the pages.
 * @param cores where Chromium runs, as taskset names them; null: on all
 */
export async function openDashboards(
  url: string,
  key: string,
  count: number,
  cores: string | null,
): Promise<() => Promise<void>> {
  const browser = await launchOn(cores);
  const session = await browser.newBrowserCDPSession();
  const { name, value } = await sessionCookie(url, key);
  const cookies = [{ name, value, url }];
  for (let at = 0; at < count; at++) {
    const { browserContextId } = await session.send("Target.createBrowserContext");
    await session.send("Storage.setCookies", { cookies, browserContextId });
    const path = PATHS[at % PATHS.length];
    const { targetId } = await session.send("Target.createTarget", { url: url + path, browserContextId });
    await untilLive(session, targetId);
  }
  return () => browser.close();
}

async function launchOn(cores: string | null): Promise<Browser> {
  const before = new Set(familyOf(process.pid));
  const browser = await launchChromium();
  if (cores === null) return browser;
  // Processes of pages inherit the cores of the process that starts them.
  useCores(
    cores,
    familyOf(process.pid).filter((pid) => !before.has(pid)),
  );
  return browser;
}

async function untilLive(session: CDPSession, targetId: string): Promise<void> {
  const { sessionId } = await session.send("Target.attachToTarget", { targetId });
  const deadline = performance.now() + LIVE_LIMIT_MS;
  while (!(await evaluate(session, sessionId, LIVE))) {
    if (performance.now() > deadline) throw new Error("a dashboard did not open its stream");
    await Bun.sleep(LOOK_MS);
  }
  await session.send("Target.detachFromTarget", { sessionId });
}

async function evaluate(session: CDPSession, sessionId: string, expression: string): Promise<unknown> {
  const answered = new Promise<string>((resolve) => {
    session.once("Target.receivedMessageFromTarget", ({ message }) => resolve(message));
  });
  const message = JSON.stringify({ id: 1, method: "Runtime.evaluate", params: { expression } });
  await session.send("Target.sendMessageToTarget", { sessionId, message });
  return JSON.parse(await answered).result?.result?.value;
}
