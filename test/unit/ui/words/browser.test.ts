import { expect, test } from "bun:test";
import { browserText } from "../../../../src/ui/words/browser.ts";

const WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)";

test.each([
  [`Mozilla/5.0 (X11; Linux x86_64) ${WEBKIT} HeadlessChrome/156.0.0.0 Safari/537.36`, "Chrome on Linux"],
  [
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${WEBKIT} Chrome/130.0.0.0 Safari/537.36 Edg/130.0`,
    "Edge on Windows",
  ],
  [
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:130.0) Gecko/20100101 Firefox/130.0",
    "Firefox on macOS",
  ],
  [
    `Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) ${WEBKIT} Version/18.0 Safari/604.1`,
    "Safari on iPhone",
  ],
  [`Mozilla/5.0 (Linux; Android 14) ${WEBKIT} Chrome/130.0 Mobile Safari/537.36`, "Chrome on Android"],
  ["curl/8.5.0", "curl/8.5.0"],
])("%s is shown as %s", (userAgent, shown) => {
  expect(browserText(userAgent)).toBe(shown);
});
