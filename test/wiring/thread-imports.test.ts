import { expect, test } from "bun:test";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

/** Returns the packages that a file loads when it starts, directly or through our other files. */
async function packagesOf(entry: string): Promise<string[]> {
  const { metafile } = await Bun.build({
    entrypoints: [join(ROOT, entry)],
    target: "bun",
    packages: "external",
    splitting: true,
    metafile: true,
  });
  const inputs = metafile?.inputs ?? {};
  const start = Object.keys(inputs).filter((path) => path.endsWith(entry));
  const loaded = new Set(start);
  for (const path of loaded)
    for (const { path: next, kind } of inputs[path]?.imports ?? [])
      if (kind !== "dynamic-import") loaded.add(next);
  return [...loaded].filter((path) => inputs[path] === undefined);
}

test("a thread that makes mail starts without the library of checks", async () => {
  const packages = await packagesOf("src/wiring/cpu/render-worker.ts");
  expect(packages).toContain("liquidjs");
  expect(packages.filter((name) => name.startsWith("mailauth"))).toEqual([]);
});
