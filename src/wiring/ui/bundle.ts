import { join } from "node:path";
import type { UiFile } from "../../http/dashboard/assets.ts";

/** The dashboard's sources, seen from here. The built program does not have them. */
const SOURCES = "../../ui";
/** Best compression: it runs once, and every first visit loads the result. */
const GZIP_LEVEL = 9;

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
    entrypoints: [sourceOf("main.tsx")],
    target: "browser",
    format: "esm",
    minify: true,
    naming: "[name].[ext]",
    // Nothing of the build machine's environment gets into the files.
    env: "disable",
    define: { "process.env.NODE_ENV": '"production"' },
    metafile: true,
  });
  const built = outputs.map(async (output) => {
    return fileOf(output.path.replace(/^.*\//, ""), new Uint8Array(await output.arrayBuffer()));
  });
  return {
    files: [...(await Promise.all(built)), fileOf("icon.svg", await Bun.file(sourceOf("icon.svg")).bytes())],
    inputs: Object.keys(metafile?.inputs ?? {}),
  };
}

function sourceOf(name: string): string {
  return join(import.meta.dir, SOURCES, name);
}

/** Puts a hash of the content into the name. The bundler's own hash depends on the current folder. */
function fileOf(name: string, bytes: Uint8Array<ArrayBuffer>): UiFile {
  const hash = Bun.hash(bytes).toString(36);
  return {
    name: name.replace(/(?=\.\w+$)/, `-${hash}`),
    gzipped: new Blob([Bun.gzipSync(bytes, { level: GZIP_LEVEL })]),
  };
}
