import type { Page } from "playwright-core";

/** A broken rule with the elements that break it. */
interface Finding {
  id: string;
  nodes: { html: string; failureSummary?: string }[];
}

const source = () => Bun.file(Bun.fileURLToPath(import.meta.resolve("axe-core/axe.min.js"))).text();

/**
 * Returns the rules of WCAG 2.2 AA and of good practice that the page breaks, with the elements that break them. Empty:
 * none. Frames are left out, because their content is mail and not ours.
 */
export async function brokenRules(page: Page): Promise<string[]> {
  // The debugger evaluates it, so that the page's Content-Security-Policy does not apply.
  await page.evaluate(await source());
  const found = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(options: object): Promise<{ violations: Finding[] }> };
    };
    return (await axe.run({ iframes: false, resultTypes: ["violations"] })).violations;
  });
  return found.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
}
