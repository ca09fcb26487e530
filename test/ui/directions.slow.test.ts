import { expect } from "bun:test";
import { SERVICE_DOMAIN } from "../support/service.ts";
import { browserTest, dashboard } from "../support/dashboard.ts";

const ui = dashboard();

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

browserTest("a long subject shows its beginning, whatever its direction", async () => {
  for (const [, words] of SUBJECTS) {
    const { status } = await ui.service.call("POST", "/v1/emails", {
      from: `hello@onboarding.${SERVICE_DOMAIN}`,
      to: `delivered@simulator.${SERVICE_DOMAIN}`,
      subject: words.repeat(10).trim(),
      text: "Hello",
    });
    expect(status).toBe(202);
  }
  const { page } = await ui.browser.visit(ui.service.url, "/messages", { key: ui.service.accountKey });
  await page
    .locator(".subject-cell")
    .nth(SUBJECTS.length - 1)
    .waitFor();
  const shown = await page.evaluate(SHOWN_BEGINNINGS);
  expect(shown).toEqual(SUBJECTS.map(() => true));
});
