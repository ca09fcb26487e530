// `npm run build` makes `dist/postrider`: the service as one program without node_modules. Arguments: another file, and the
// processor of a Linux machine that it is for (`x64`, `arm64`).
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";

import { sdkTarball } from "../src/wiring/sdk/package.ts";
import { bundleDrawing, bundleUi, type DrawingBundle, type UiBundle } from "../src/wiring/ui/bundle.ts";
import { ARCHS, linuxTarget, ownTarget, type Target } from "./release/target.ts";
import { lockedHashes, type Packaged, sbomOf } from "./sbom.ts";

const ROOT = join(import.meta.dir, "..");

/** The program and the entry files of its threads. The bundler does not find the threads by itself. */
export const ENTRIES = [
  "src/main.ts",
  "src/wiring/cpu/inspect-worker.ts",
  "src/wiring/cpu/render-worker.ts",
  "src/wiring/cpu/write-worker.ts",
];

/** A line of a package that loads a native addon from the build machine's disk, and its replacement. */
interface Rewrite {
  /** The file, below node_modules. */
  file: string;
  from: string;
  to: string;
}

/**
 * Removes the addon of msgpackr, which BullMQ uses to pack jobs: it only speeds up reading long strings. If it stayed, the
 * program would load any file at the build machine's path.
 */
export const MSGPACKR: Rewrite = {
  file: "msgpackr-extract/index.js",
  from: "require('node-gyp-build-optional-packages')(__dirname)",
  to: "null",
};

/** Names libSQL's addon by a literal, so that the program contains it. */
function libsqlRewrites({ libsql }: Target): Rewrite[] {
  // The synchronous half of the package, and the half that syncs replicas off the event loop.
  return ["libsql/index.js", "libsql/promise.js"].map((file) => ({
    file,
    from: "} = requireNative();",
    to: `} = require("@libsql/${libsql}");`,
  }));
}

/** Takes libSQL's addon from where the target says. */
function addonSource({ libsql, from }: Target): Bun.BunPlugin[] {
  if (from === null) return [];
  const setup = (builder: Bun.PluginBuilder): void => {
    builder.onResolve({ filter: new RegExp(`^@libsql/${libsql}$`) }, ({ path }) => ({
      path: join(from.modules, path, "index.node"),
    }));
  };
  return [{ name: "addon-source", setup }];
}

/** Makes the rewrites. `unused` names the files that had nothing to rewrite. */
export function addonPlugin(list: readonly Rewrite[]): { plugin: Bun.BunPlugin; unused: () => string[] } {
  const waiting = new Map(list.map((rewrite) => [rewrite.file, rewrite]));
  const setup = (builder: Bun.PluginBuilder): void => {
    for (const { file, from, to } of waiting.values())
      builder.onLoad({ filter: new RegExp(`/node_modules/${RegExp.escape(file)}$`) }, async ({ path }) => {
        const text = await Bun.file(path).text();
        if (text.split(from).length === 2) waiting.delete(file);
        return { contents: text.replace(from, () => to), loader: "js" };
      });
  };
  return { plugin: { name: "native-addons", setup }, unused: () => [...waiting.keys()] };
}

/** Puts the dashboard's files into the program. They have no path, which would differ between builds. */
export function uiPlugin({ files }: UiBundle, drawing: DrawingBundle): Bun.BunPlugin {
  const embedded = new Map(files.map(({ name, gzipped }) => [`${name}.gz`, gzipped]));
  embedded.set("drawing.txt", new Blob([drawing.program]));
  const lines = [...embedded.keys()].map(
    (name, at) => `import file${at} from "dashboard:${name}" with { type: "file" };`,
  );
  const built = files.map(
    ({ name, later }, at) => `{ name: ${JSON.stringify(name)}, later: ${later === true}, path: file${at} }`,
  );
  const contents = [
    ...lines,
    `export const builtUi = [${built.join(", ")}];`,
    `export const builtDrawing = file${files.length};`,
  ].join("\n");
  return {
    name: "dashboard",
    setup(builder) {
      builder.onLoad({ filter: /\/src\/wiring\/ui\/built\.ts$/ }, () => ({ contents, loader: "js" }));
      builder.onResolve({ filter: /^dashboard:/ }, ({ path }) => ({
        path: path.slice("dashboard:".length),
        namespace: "dashboard",
      }));
      builder.onLoad({ filter: /.*/, namespace: "dashboard" }, async ({ path }) => {
        const file = embedded.get(path);
        if (file === undefined) throw new Error(`the dashboard has no ${path}`);
        return { contents: await file.bytes(), loader: "file" };
      });
    },
  };
}

/** Puts the client's npm package into the program, without a path, too. */
export async function sdkPlugin(): Promise<Bun.BunPlugin> {
  // Made before, because a plugin that waits for another bundle waits for ever.
  const client = await sdkTarball();
  const contents = 'import path from "client:sdk.tgz" with { type: "file" }; export const builtSdk = path;';
  return {
    name: "client",
    setup(builder) {
      builder.onLoad({ filter: /\/src\/wiring\/sdk\/built\.ts$/ }, () => ({ contents, loader: "js" }));
      builder.onResolve({ filter: /^client:/ }, () => ({ path: "sdk.tgz", namespace: "client" }));
      builder.onLoad({ filter: /.*/, namespace: "client" }, () => ({ contents: client, loader: "file" }));
    },
  };
}

/** `LICENSE`, `license.md`, `NOTICE`, `bundle.js.LICENSE.txt`. */
const LICENSE_FILE = /(^|\.)(licen[cs]e|notice|copying)[^.]*(\.md|\.txt)?$/i;

/** Returns the folders of the packages that the program contains. */
export function packageFolders(inputs: readonly string[]): string[] {
  const folders = inputs.flatMap((input) => /^.*node_modules\/(@[^/]+\/)?[^/]+(?=\/)/.exec(input)?.[0] ?? []);
  return [...new Set(folders)].sort();
}

function packageOf(folder: string): Packaged {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}

/** Returns what the code learns from the build (version.ts, form.ts). */
export function definitions(form: "program" | "package"): Record<string, string> {
  return {
    BUILT_FROM: JSON.stringify(commit()),
    BUILT_AS: JSON.stringify(form),
    // The bundler would write the build machine's path.
    __dirname: JSON.stringify("."),
  };
}

/** Returns what Git prints of this clone; "" outside a clone, and on a machine without Git, as in the image's build. */
export function git(...args: string[]): string {
  if (Bun.which("git") === null) return "";
  const { success, stdout } = Bun.spawnSync(["git", "-C", ROOT, ...args], { stderr: "ignore" });
  return success ? stdout.toString().trim() : "";
}

/** Returns the first 12 digits of the commit; "" if it is not known. With changes that are in no commit it ends with `+`. */
function commit(): string {
  const head = git("rev-parse", "--short=12", "HEAD");
  return head !== "" && git("status", "--porcelain") !== "" ? `${head}+` : head;
}

/** Returns the bill of materials of the program, Bun included. */
function sbom(folders: readonly string[]): string {
  const bun = { name: "bun", version: Bun.version, license: "MIT" };
  const hashes = lockedHashes(readFileSync(join(ROOT, "bun.lock"), "utf8"));
  return sbomOf(packageOf(ROOT), [...folders.map(packageOf), bun], hashes);
}

/** Returns the licenses of all packages in the program. Most of them must be passed on with a copy. */
export function licensesOf(folders: readonly string[]): string {
  // The program contains Bun, but Bun's package has no license file.
  const bun = `Bun ${Bun.version}: MIT and others, see https://github.com/oven-sh/bun/blob/main/LICENSE.md\n`;
  return [...[ROOT, ...folders].map(licenseOf), bun].join(`\n${"-".repeat(80)}\n\n`);
}

function licenseOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const files = readdirSync(folder).filter((file) => LICENSE_FILE.test(file));
  const texts = files.map((file) => `\n${readFileSync(join(folder, file), "utf8").trim()}\n`);
  return `${name} ${version}: ${license}\n${texts.join("")}`;
}

/**
 * Builds the program, and next to it a `.licenses` file and a bill of materials (`.cdx.json`). Downloads nothing. Equal
 * sources and packages give equal bytes in every folder. The current folder must be the root of the sources: the bundler names
 * modules by their path from there.
 * @throws if a package has changed so that the program would lack its addon
 */
export async function build(outfile: string, target: Target): Promise<void> {
  mkdirSync(dirname(outfile), { recursive: true });
  // In the target's folder, so that the last step is a rename: a running program is never half replaced.
  const folder = mkdtempSync(join(dirname(outfile), ".build-"));
  try {
    const { plugin, unused } = addonPlugin([...libsqlRewrites(target), MSGPACKR]);
    const [ui, drawing] = [await bundleUi(), await bundleDrawing()];
    // The program contains this name.
    const built = join(folder, "postrider");
    const { metafile } = await Bun.build({
      entrypoints: ENTRIES.map((entry) => join(ROOT, entry)),
      root: ROOT,
      target: "bun",
      format: "esm",
      plugins: [plugin, ...addonSource(target), uiPlugin(ui, drawing), await sdkPlugin()],
      // Identifiers stay, because Elysia and other packages read the names of classes.
      minify: { whitespace: true, syntax: true },
      // Halves the time of a start.
      bytecode: true,
      // Stack traces name lines of the source. The program contains the map, compressed.
      sourcemap: "inline",
      metafile: true,
      define: definitions("program"),
      compile: {
        outfile: built,
        ...(target.from === null ? {} : { executablePath: target.from.bun, target: target.from.bunTarget }),
        // Settings come only from the environment, even if the current folder has a .env or a bunfig.toml.
        autoloadDotenv: false,
        autoloadBunfig: false,
      },
    });
    if (unused().length > 0) throw new Error(`nothing to rewrite in ${unused().join(", ")}`);
    const folders = packageFolders([...Object.keys(metafile?.inputs ?? {}), ...ui.inputs, ...drawing.inputs]);
    writeFileSync(`${outfile}.licenses`, licensesOf(folders));
    writeFileSync(`${outfile}.cdx.json`, sbom(folders));
    renameSync(built, outfile);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const [path = join(ROOT, "dist/postrider"), wanted] = process.argv.slice(2);
  const outfile = resolve(path);
  const arch = ARCHS.find((one) => one === wanted);
  process.chdir(ROOT);
  await build(outfile, arch === undefined ? ownTarget() : await linuxTarget(arch));
  console.log(`built ${outfile}, ${(Bun.file(outfile).size / 1e6).toFixed(0)} MB`);
}
