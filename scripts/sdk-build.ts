// `bun scripts/sdk-build.ts` makes sdk/dist: the client as ES modules and as CommonJS, with its types.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { sdkFiles } from "../src/wiring/sdk/package.ts";

const SDK = join(import.meta.dir, "../sdk");

/** Builds the client. */
export async function buildSdk(): Promise<void> {
  rmSync(join(SDK, "dist"), { recursive: true, force: true });
  for (const { path, content } of await sdkFiles())
    if (path.startsWith("dist/")) await Bun.write(join(SDK, path), content);
}

if (import.meta.main) await buildSdk();
