import { resolve } from "node:path";
import type { SdkSource } from "../../http/openapi/sdk-package.ts";
import { builtSdk } from "./built.ts";

/** Returns the client's npm package: the one in the built service, or in a clone the one that the first request makes. */
export function sdkSource(): SdkSource {
  let made: Promise<Uint8Array<ArrayBuffer>> | null = null;
  return () => {
    made ??= packaged().catch((error: unknown) => {
      // The next request tries again, because the fault may be mended by then.
      made = null;
      throw error;
    });
    return made;
  };
}

async function packaged(): Promise<Uint8Array<ArrayBuffer>> {
  if (builtSdk !== null) return Bun.file(resolve(import.meta.dir, builtSdk)).bytes();
  return (await import("./package.ts")).sdkTarball();
}
