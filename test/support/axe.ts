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
  // The debugger evaluates it, so that the page's Content-Security-Policy does not apply.
  await page.evaluate(await source());
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
