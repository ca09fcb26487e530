// `bun scripts/sdk-declarations.ts` writes sdk/types: the client's types as its package has them. `--check` compares them.
import { readdirSync, readFileSync, rmSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "..");
/** The declarations of the client. */
const TYPES = join(ROOT, "sdk/types");

/**
 * Makes the declarations in a folder. Those of the API are left out, because `sdk/src/api.ts` consists of declarations.
 * @throws if the client's types are wrong
 */
function declare(folder: string): void {
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const options = ["-p", join(ROOT, "sdk"), "--emitDeclarationOnly", "--noEmitOnError", "--outDir", folder];
  const { exitCode, stdout } = Bun.spawnSync([process.execPath, tsc, ...options]);
  if (exitCode !== 0) throw new Error(`tsc: ${stdout.toString()}`);
  rmSync(join(folder, "api.d.ts"));
}

function textsOf(folder: string): Record<string, string> {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".ts"),
  );
  return Object.fromEntries(paths.sort().map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}

/** Writes sdk/types. */
export function writeDeclarations(): void {
  rmSync(TYPES, { recursive: true, force: true });
  declare(TYPES);
}

/** @throws if sdk/types is not what the sources give */
function checkDeclarations(): void {
  const folder = mkdtempSync(join(tmpdir(), "sdk-declarations-"));
  try {
    declare(folder);
    if (!Bun.deepEquals(textsOf(folder), textsOf(TYPES)))
      throw new Error("sdk/types is not made from sdk/src: run `bun scripts/sdk-declarations.ts`");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  if (process.argv.includes("--check")) checkDeclarations();
  else writeDeclarations();
}
