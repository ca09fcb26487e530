import type { UiFile, UiSource } from "../../http/dashboard/assets.ts";
import type { Draw } from "../../http/dashboard/shell.ts";
import { builtUi } from "./built.ts";

/** Draws a page of the dashboard. The first page loads what draws it. */
export const drawUi: Draw = async (sheet) => (await import("../../ui/drawing/index.js")).draw(sheet);

/** Returns the dashboard's files: those in the program, or in a clone those that the first request bundles. */
export function uiFiles(): UiSource {
  const built = builtUi?.map(({ path, ...file }) => ({ ...file, gzipped: Bun.file(path) }));
  let files: Promise<readonly UiFile[]> | null = built === undefined ? null : Promise.resolve(built);
  return () => {
    files ??= bundled().catch((error: unknown) => {
      // The next request tries again, because the fault may be mended by then.
      files = null;
      throw error;
    });
    return files;
  };
}

async function bundled(): Promise<readonly UiFile[]> {
  return (await (await import("./bundle.ts")).bundleUi()).files;
}
