import type { UiFile, UiSource } from "../../http/dashboard/assets.ts";
import type { Draw } from "../../http/dashboard/shell.ts";
import { builtUi } from "./built.ts";

/** Returns the function that draws the dashboard's pages. The first page loads what it takes. */
export function uiDraw(): Draw {
  let loaded: Promise<{ draw: Draw }> | null = null;
  return async (sheet) => {
    loaded ??= (builtUi === null ? bundledDrawing() : import("../../ui/drawing/index.js")).catch((error) => {
      // The next page tries again, because the fault may be mended by then.
      loaded = null;
      throw error;
    });
    return (await loaded).draw(sheet);
  };
}

async function bundledDrawing(): Promise<{ draw: Draw }> {
  const url = URL.createObjectURL(await (await import("./bundle.ts")).bundleDrawing());
  try {
    return await import(url);
  } finally {
    URL.revokeObjectURL(url);
  }
}

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
