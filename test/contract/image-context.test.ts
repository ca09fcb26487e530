import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

const ROOT = join(import.meta.dir, "../..");

function read(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

/** Files that the build of the image reads: the source, its script, and what they import. */
function filesOfTheBuild(): string[] {
  const sources = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => `src/${path}`);
  const roots = [...sources, "scripts/build.ts"];
  const imported = roots.flatMap((path) =>
    // Imports of types are gone before anything is built. An import in a string is written into another file.
    [
      ...read(path)
        .replace(/import type \{[^}]*\} from "[^"]+";/g, "")
        .matchAll(/^[^'\n]*?(?:from|import) ?\(?"(\.{1,2}\/[^"]+)"/gm),
    ].map(([, specifier = ""]) => posix.join(posix.dirname(path), specifier)),
  );
  const needed = [
    "package.json",
    "bun.lock",
    "tsconfig.json",
    "LICENSE",
    // The client, which the service serves.
    "sdk/LICENSE",
    "sdk/README.md",
    "sdk/package.json",
    "sdk/src/testing.ts",
    "sdk/types/testing.d.ts",
    "scripts/setup.sh",
    ...roots,
    ...imported,
  ];
  return [...new Set(needed)].filter((path) => !path.startsWith("node_modules/"));
}

/** Returns whether `.dockerignore` lets the file into the build. The last line that matches decides. */
function isAllowed(path: string): boolean {
  const [, ...lines] = read(".dockerignore").trim().split("\n");
  return lines
    .filter((line) => line.startsWith("!"))
    .some((line) => new Bun.Glob(line.slice(1)).match(path) || path.startsWith(`${line.slice(1)}/`));
}

/** Returns whether a COPY of the Dockerfile takes the file. */
function isCopied(path: string): boolean {
  const copies = [...read("Dockerfile").matchAll(/^COPY (?!--)(.+) \S+$/gm)];
  const sources = copies.flatMap(([, list = ""]) => list.split(" "));
  return sources.some((source) => path === source || path.startsWith(`${source.replace(/\/$/, "")}/`));
}

test("the image is built from every file that the program imports", () => {
  const files = filesOfTheBuild();
  expect(files.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  expect(files.filter((path) => !isAllowed(path) || !isCopied(path))).toEqual([]);
});
