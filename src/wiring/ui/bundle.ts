import { join } from "node:path";
import type { UiFile } from "../../http/dashboard/assets.ts";

/** The dashboard's sources, seen from here. The built program does not have them. */
const SOURCES = "../../ui";
/** Best compression: it runs once, and every first visit loads the result. */
const GZIP_LEVEL = 9;

const COMMON = {
  // Nothing of the build machine's environment gets into the files.
  env: "disable",
  define: { "process.env.NODE_ENV": '"production"' },
} as const;

/** The dashboard's files, and the paths of everything they were made of. */
export interface UiBundle {
  files: readonly UiFile[];
  inputs: readonly string[];
}

/**
 * Bundles the dashboard for browsers. The names contain a hash of the content, so they may be cached for good.
 * @throws if a source has a fault
 */
export async function bundleUi(): Promise<UiBundle> {
  const { outputs, metafile } = await Bun.build({
    entrypoints: [sourceOf("start.ts"), sourceOf("main.tsx")],
    target: "browser",
    format: "esm",
    minify: true,
    splitting: true,
    naming: { entry: "[name].[ext]", chunk: "[name]-[hash].[ext]" },
    ...COMMON,
    metafile: true,
  });
  const built = outputs.map(async (output) => {
    return { name: output.path.replace(/^.*\//, ""), kind: output.kind, text: await output.text() };
  });
  const icon = { name: "icon.svg", kind: "asset", text: await Bun.file(sourceOf("icon.svg")).text() };
  return {
    files: named([...(await Promise.all(built)), icon]),
    inputs: Object.keys(metafile?.inputs ?? {}),
  };
}

/** The program that draws pages, and the paths of everything it was made of. */
export interface DrawingBundle {
  /** A function expression that takes `exports`: a module in the form of CommonJS. */
  program: string;
  inputs: readonly string[];
}

/**
 * Bundles what draws pages on the server into one function. Each page calls it and gets its own modules.
 * @throws if a source has a fault
 */
export async function bundleDrawing(): Promise<DrawingBundle> {
  const { outputs, metafile } = await Bun.build({
    entrypoints: [sourceOf("drawing/index.js")],
    target: "bun",
    format: "cjs",
    minify: { whitespace: true, syntax: true },
    metafile: true,
    ...COMMON,
  });
  const [module] = outputs;
  if (module === undefined) throw new Error("what draws the dashboard has not been bundled");
  return { program: await module.text(), inputs: Object.keys(metafile?.inputs ?? {}) };
}

/** A file as the bundler has made it. */
interface Output {
  name: string;
  kind: string;
  text: string;
}

/** Gives the files their names, those first that the others name in their imports. */
function named(outputs: readonly Output[]): UiFile[] {
  const files: UiFile[] = [];
  let left = outputs;
  while (left.length > 0) {
    const next = left.find(
      ({ name, text }) => !left.some((one) => one.name !== name && text.includes(one.name)),
    );
    if (next === undefined) throw new Error("the dashboard's files import each other in a circle");
    const file = fileOf(next);
    files.push(file);
    left = left
      .filter((one) => one !== next)
      .map((one) => ({ ...one, text: one.text.replaceAll(next.name, file.name) }));
  }
  return files;
}

function sourceOf(name: string): string {
  return join(import.meta.dir, SOURCES, name);
}

/** Puts a hash of the content into the name. The bundler's own hash depends on the current folder. */
function fileOf({ name, kind, text }: Output): UiFile {
  const later = kind === "chunk";
  const hash = Bun.hash(text).toString(36);
  const gzipped = new Blob([Bun.gzipSync(text, { level: GZIP_LEVEL })]);
  return { name: name.replace(/(?:-\w+)?(?=\.\w+$)/, `-${hash}`), gzipped, ...(later ? { later } : {}) };
}
