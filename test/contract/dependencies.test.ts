import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

/** Returns the packages that none of the sources imports, by name or below it. */
function unimported(packages: readonly string[], sources: readonly string[]): string[] {
  const text = sources.join("\n");
  return packages.filter(
    (name) =>
      !new RegExp(
        `(?:from|import|import\\()\\s*"(?:(?:\\.\\./)+node_modules/)?${RegExp.escape(name)}["/]`,
      ).test(text),
  );
}

function sourcesIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => readFileSync(join(ROOT, folder, path), "utf8"));
}

test("every dependency is imported in src", () => {
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  expect(unimported(Object.keys(dependencies), sourcesIn("src"))).toEqual([]);
});

test("an import is found by the package's name, and not by a longer one", () => {
  const sources = [
    `import { a } from "one";`,
    `import "two/part";`,
    `await import("three");`,
    `import x from "fourth";`,
    `import file from "../../node_modules/five/file.js" with { type: "file" };`,
  ];
  expect(unimported(["one", "two", "three", "four", "five"], sources)).toEqual(["four"]);
});
