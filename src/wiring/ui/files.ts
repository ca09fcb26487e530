import { resolve } from "node:path";
import { runInThisContext } from "node:vm";
import type { UiFile, UiSource } from "../../http/dashboard/assets.ts";
import type { Draw } from "../../http/dashboard/shell.ts";
import { builtDrawing, builtUi } from "./built.ts";

/** Makes the modules that draw one page. */
type MakeModules = (exports: object, require: unknown, module: { exports: { draw?: Draw } }) => void;

/**
 * Returns the function that draws the dashboard's pages. Each page gets its own modules. If pages shared
 * them, state could reach the pages of other people, and a fault would stay. The first page loads the program.
 */
export function uiDraw(): Draw {
  let loaded: Promise<MakeModules> | null = null;
  return async (sheet) => {
    loaded ??= drawingProgram().catch((error) => {
      // The next page tries again, because the fault may be mended by then.
      loaded = null;
      throw error;
    });
    const module: { exports: { draw?: Draw } } = { exports: {} };
    (await loaded)(module.exports, undefined, module);
    const { draw } = module.exports;
    if (draw === undefined) throw new Error("the program that draws pages exports nothing");
    return draw(sheet);
  };
}

async function drawingProgram(): Promise<MakeModules> {
  const program =
    builtDrawing === null
      ? (await (await import("./bundle.ts")).bundleDrawing()).program
      : await Bun.file(resolve(import.meta.dir, builtDrawing)).text();
  return runInThisContext(program, { filename: "drawing.js" });
}

/** Returns the dashboard's files: those in the program, or in a clone those that the first request bundles. */
export function uiFiles(): UiSource {
  const built = builtUi?.map(({ path, ...file }) => ({
    ...file,
    gzipped: Bun.file(resolve(import.meta.dir, path)),
  }));
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
