import { expect, test } from "bun:test";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

/** Bounds that docs/security.md names, with the file of each. */
async function namedBounds(): Promise<[file: string, bound: string][]> {
  const page = await Bun.file(join(ROOT, "docs/security.md")).text();
  return [...page.matchAll(/`(src\/[^`]+\.ts)` `([A-Z][A-Z_]+)`/g)].map(([, file = "", bound = ""]) => [
    file,
    bound,
  ]);
}

test("docs/security.md names bounds that the code has", async () => {
  const bounds = await namedBounds();
  expect(bounds.length).toBeGreaterThan(20);
  const missing: string[] = [];
  for (const [file, bound] of bounds) {
    const source = Bun.file(join(ROOT, file));
    const text = (await source.exists()) ? await source.text() : "";
    if (!new RegExp(`^(?:export )?const ${bound}\\b`, "m").test(text)) missing.push(`${file} ${bound}`);
  }
  expect(missing).toEqual([]);
});
