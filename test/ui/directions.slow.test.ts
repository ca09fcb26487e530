import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { BROWSER_MS, CHROMIUM, startBrowser, type TestBrowser } from "../support/browser.ts";
import { SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

setDefaultTimeout(BROWSER_MS);

let service: TestService;
let browser: TestBrowser;
beforeAll(async () => {
  if (CHROMIUM === null) return;
  [service, browser] = await Promise.all([startService(), startBrowser()]);
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

const SUBJECTS = [
  ["left to right", "Your order is ready to be collected at the shop. "],
  ["right to left", "ההזמנה שלך מוכנה לאיסוף בחנות שלנו "],
  ["right to left, with Latin words", "הזמנה Acme 48213 מוכנה "],
] as const;

/** Returns for each subject whether it is cut and its first letter is visible. */
const SHOWN_BEGINNINGS = `[...document.querySelectorAll(".subject-cell")].map((cell) => {
  const range = document.createRange();
  range.setStart(cell.firstChild, 0);
  range.setEnd(cell.firstChild, 1);
  const [letter, box] = [range.getBoundingClientRect(), cell.getBoundingClientRect()];
  const isCut = cell.scrollWidth > cell.clientWidth;
  return isCut && letter.left >= box.left - 1 && letter.right <= box.right + 1;
})`;

test.skipIf(CHROMIUM === null)("a long subject shows its beginning, whatever its direction", async () => {
  for (const [, words] of SUBJECTS) {
    const { status } = await service.call("POST", "/v1/emails", {
      from: `hello@onboarding.${SERVICE_DOMAIN}`,
      to: `delivered@simulator.${SERVICE_DOMAIN}`,
      subject: words.repeat(10).trim(),
      text: "Hello",
    });
    expect(status).toBe(202);
  }
  const { page } = await browser.visit(service.url, "/messages", { key: service.accountKey });
  await page
    .locator(".subject-cell")
    .nth(SUBJECTS.length - 1)
    .waitFor();
  const shown = await page.evaluate(SHOWN_BEGINNINGS);
  expect(shown).toEqual(SUBJECTS.map(() => true));
});
