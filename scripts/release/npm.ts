// `npm run release:npm` makes the npm packages in `dist/npm`: the service as `@postrider/server`, and the client.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bundleDrawing, bundleUi } from "../../src/wiring/ui/bundle.ts";
import { sdkTarball } from "../../src/wiring/sdk/package.ts";
import { type PackageFile, tarball } from "../../src/wiring/sdk/tarball.ts";
import {
  addonPlugin,
  definitions,
  ENTRIES,
  licensesOf,
  MSGPACKR,
  packageFolders,
  sdkPlugin,
  uiPlugin,
} from "../build.ts";

const ROOT = join(import.meta.dir, "../..");
/** Files that the package has as they are. */
const AS_THEY_ARE = join(import.meta.dir, "server");
const PROGRAM = "postrider.cjs";
/** Native code, which npm chooses by platform. The bundle leaves it out. */
const LEFT_OUT = ["libsql", "libsql/promise"];

/** Returns the package.json of `@postrider/server`. */
function manifestOf(): object {
  const { version, license, dependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const { bun, libsql } = dependencies;
  return {
    name: "@postrider/server",
    version,
    description: "Postrider, the self-hosted email service, as one package.",
    license,
    type: "module",
    engines: { node: ">=20" },
    bin: { postrider: PROGRAM },
    main: "index.cjs",
    types: "index.d.cts",
    exports: { ".": { types: "./index.d.cts", default: "./index.cjs" }, "./package.json": "./package.json" },
    files: [
      ...readdirSync(AS_THEY_ARE).filter((name) => name !== "README.md"),
      "dist",
      "LICENSES.txt",
    ].sort(),
    keywords: ["email", "smtp", "transactional-email", "testing"],
    dependencies: { bun, libsql },
  };
}

/** Bundles the service: the code and its threads share chunks, and all files are in one folder. */
async function bundle(outdir: string): Promise<readonly string[]> {
  const { plugin, unused } = addonPlugin([MSGPACKR]);
  const [ui, drawing] = [await bundleUi(), await bundleDrawing()];
  const { metafile } = await Bun.build({
    entrypoints: ENTRIES.map((entry) => join(ROOT, entry)),
    root: ROOT,
    outdir,
    target: "bun",
    format: "esm",
    splitting: true,
    external: LEFT_OUT,
    plugins: [plugin, uiPlugin(ui, drawing), await sdkPlugin()],
    naming: { entry: "[name].[ext]", chunk: "[name]-[hash].[ext]", asset: "[name]-[hash].[ext]" },
    // Identifiers stay, because Elysia and other packages read the names of classes.
    minify: { whitespace: true, syntax: true },
    metafile: true,
    define: definitions("package"),
  });
  if (unused().length > 0) throw new Error(`nothing to rewrite in ${unused().join(", ")}`);
  return packageFolders([...Object.keys(metafile?.inputs ?? {}), ...ui.inputs, ...drawing.inputs]);
}

function filesIn(folder: string, under = ""): PackageFile[] {
  const named = readdirSync(folder).sort();
  return named.map((name) => ({
    path: under + name,
    content: readFileSync(join(folder, name)),
    isProgram: name === PROGRAM,
  }));
}

/** Returns the files of `@postrider/server`. */
export async function serverFiles(): Promise<PackageFile[]> {
  mkdirSync(join(ROOT, "dist"), { recursive: true });
  const folder = mkdtempSync(join(ROOT, "dist/.npm-"));
  try {
    const outdir = join(folder, "server");
    const folders = await bundle(outdir);
    return [
      { path: "package.json", content: `${JSON.stringify(manifestOf(), null, 2)}\n` },
      ...filesIn(AS_THEY_ARE),
      { path: "LICENSE", content: readFileSync(join(ROOT, "LICENSE")) },
      { path: "LICENSES.txt", content: licensesOf(folders) },
      ...filesIn(outdir, "dist/"),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Makes the packages in a folder. Returns their paths. */
export async function releaseNpm(folder: string): Promise<string[]> {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const server = join(folder, `postrider-server-${version}.tgz`);
  await Bun.write(server, tarball(await serverFiles()));
  const client = join(folder, `postrider-${version}.tgz`);
  await Bun.write(client, await sdkTarball());
  return [server, client];
}

if (import.meta.main) {
  // The bundler names modules by their path from the current folder, so equal sources give equal files only in one folder.
  process.chdir(ROOT);
  for (const path of await releaseNpm(join(ROOT, "dist/npm")))
    console.log(`made ${path}, ${Math.round(Bun.file(path).size / 1000)} kB`);
}
