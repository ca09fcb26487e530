import type { Page } from "playwright-core";

/** A broken rule with the elements that break it. */
interface Finding {
  id: string;
  nodes: { html: string; failureSummary?: string }[];
}

const source = () => Bun.file(Bun.fileURLToPath(import.meta.resolve("axe-core/axe.min.js"))).text();

/**
 * Returns the rules of WCAG 2.2 AA and of good practice that the page breaks, with the elements that break them. Empty:
 * none. Frames are left out, because their content is mail and not ours. `only` names the rules to check.
 */
export async function brokenRules(page: Page, only: readonly string[] | null = null): Promise<string[]> {
  // The debugger evaluates it, so that the page's Content-Security-Policy does not apply. Once is enough: it takes half as long as loading a page.
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(await source());
  const found = await page.evaluate(async (only) => {
    const { axe } = globalThis as unknown as {
      axe: { run(options: object): Promise<{ violations: Finding[] }> };
    };
    const options = {
      iframes: false,
      resultTypes: ["violations"],
      rules: { "target-size": { enabled: true } },
    };
    return (await axe.run(only === null ? options : { ...options, runOnly: only })).violations;
  }, only);
  return found.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
}

/** Rules that depend on colours and on the width. */
const LOOKS = ["color-contrast", "target-size", "scrollable-region-focusable"];

/**
 * Returns the rules that pages break, light and wide, or dark and on a phone. A page is a path with words that it
 * shows as soon as it is complete.
 */
export async function brokenPages(
  page: Page,
  url: string,
  pages: readonly [path: string, ready: string][],
): Promise<string[]> {
  const broken: string[] = [];
  for (const [path, ready] of pages) {
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.emulateMedia({ colorScheme: "light" });
    await page.goto(url + path);
    await page.getByText(ready).first().waitFor({ state: "attached" });
    broken.push(...(await brokenRules(page)).map((rule) => `${path}, light: ${rule}`));
    await page.emulateMedia({ colorScheme: "dark" });
    await page.setViewportSize({ width: 390, height: 844 });
    broken.push(...(await brokenRules(page, LOOKS)).map((rule) => `${path}, dark: ${rule}`));
    // Only a part of the page scrolls. If the window did too, the navigation would leave the lower edge of a phone.
    if (await page.evaluate("document.documentElement.scrollHeight > window.innerHeight"))
      broken.push(`${path}: the window scrolls`);
  }
  return broken;
}
