// `bun scripts/sdk-build.ts` compiles the SDK into sdk/dist, as ES modules and as CommonJS.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "..");
const SDK = join(ROOT, "sdk");

/** Each form of the package: its folder, the type that Node reads in it, and the compiler's options. */
const FORMS = [
  { folder: "esm", type: "module", options: [] },
  {
    folder: "cjs",
    type: "commonjs",
    options: ["--module", "CommonJS", "--moduleResolution", "Bundler", "--verbatimModuleSyntax", "false"],
  },
] as const;

/** Compiles the SDK. Throws if its types are wrong. */
export function buildSdk(dist = join(SDK, "dist")): void {
  rmSync(dist, { recursive: true, force: true });
  for (const { folder, type, options } of FORMS) {
    const out = join(dist, folder);
    const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
    const { exitCode, stdout } = Bun.spawnSync([
      process.execPath,
      tsc,
      "-p",
      SDK,
      "--outDir",
      out,
      ...options,
    ]);
    if (exitCode !== 0) throw new Error(`tsc: ${stdout.toString()}`);
    mkdirSync(out, { recursive: true });
    writeFileSync(join(out, "package.json"), `${JSON.stringify({ type })}\n`);
  }
}

if (import.meta.main) buildSdk();
