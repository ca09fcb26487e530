// Makes `dist/postrider`, the service as one program that needs no node_modules: `bun run build`.
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

const ROOT = join(import.meta.dir, "..");

/** The program and the entries of its threads, which a bundler does not find by itself. */
const ENTRIES = [
  "src/main.ts",
  "src/wiring/inspect-worker.ts",
  "src/wiring/render-worker.ts",
  "src/wiring/write-worker.ts",
];

/** One place in a package that looks for a native addon on the disk of the machine that the program was built on. */
interface Rewrite {
  /** The file, below node_modules. */
  file: string;
  from: string;
  to: string;
}

/**
 * libSQL's addon is named by a literal, so that it is carried in the program. msgpackr, which BullMQ packs jobs with,
 * goes without its own: that one speeds up the reading of long strings only, and would be loaded from whatever lies at
 * the path where the build machine had it.
 */
function rewrites(): Rewrite[] {
  return [
    // The synchronous half of the package, and the one that syncs replicas without holding the event loop.
    ...["libsql/index.js", "libsql/promise.js"].map((file) => ({
      file,
      from: "} = requireNative();",
      to: `} = require("@libsql/${libsqlTarget()}");`,
    })),
    {
      file: "msgpackr-extract/index.js",
      from: "require('node-gyp-build-optional-packages')(__dirname)",
      to: "null",
    },
  ];
}

/** The name that libSQL gives the platform we run on, for which the program is built. */
function libsqlTarget(): string {
  const { platform, arch } = process;
  if (platform !== "linux") return `${platform}-${arch}`;
  // The report is typed as a bare object.
  const { header } = process.report.getReport() as { header: object };
  return `linux-${arch}-${"glibcVersionRuntime" in header ? "gnu" : "musl"}`;
}

/** Carries the rewrites out; `unused` names the files in which there was nothing to rewrite. */
function addonPlugin(): { plugin: Bun.BunPlugin; unused: () => string[] } {
  const waiting = new Map(rewrites().map((rewrite) => [rewrite.file, rewrite]));
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

/** `LICENSE`, `license.md`, `NOTICE`, `bundle.js.LICENSE.txt`. */
const LICENSE_FILE = /(^|\.)(licen[cs]e|notice|copying)[^.]*(\.md|\.txt)?$/i;

/** What the program is made of and on which terms; most ask whoever passes a copy on to pass them on with it. */
function licensesOf(inputs: readonly string[]): string {
  const folders = inputs.flatMap((input) => /^.*node_modules\/(@[^/]+\/)?[^/]+(?=\/)/.exec(input)?.[0] ?? []);
  // The runtime is in the program, but its package holds no license.
  const bun = `Bun ${Bun.version}: MIT and others, see https://github.com/oven-sh/bun/blob/main/LICENSE.md\n`;
  return [...[ROOT, ...[...new Set(folders)].sort()].map(licenseOf), bun].join(`\n${"-".repeat(80)}\n\n`);
}

function licenseOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const files = readdirSync(folder).filter((file) => LICENSE_FILE.test(file));
  const texts = files.map((file) => `\n${readFileSync(join(folder, file), "utf8").trim()}\n`);
  return `${name} ${version}: ${license}\n${texts.join("")}`;
}

/**
 * Builds the program for the platform and with the Bun that this runs on, and `.licenses` beside it; nothing is downloaded.
 * @throws where a package has changed so that its addon would not be carried
 */
async function build(outfile: string): Promise<void> {
  mkdirSync(dirname(outfile), { recursive: true });
  // Beside the goal, so that the last step is a rename: a program that runs is never half replaced.
  const folder = mkdtempSync(join(dirname(outfile), ".build-"));
  try {
    const { plugin, unused } = addonPlugin();
    const built = join(folder, basename(outfile));
    const { metafile } = await Bun.build({
      entrypoints: ENTRIES.map((entry) => join(ROOT, entry)),
      root: ROOT,
      target: "bun",
      format: "esm",
      plugins: [plugin],
      // Identifiers stay: Elysia and others go by the names of classes.
      minify: { whitespace: true, syntax: true },
      // Halves the time of a start.
      bytecode: true,
      // Traces name lines of the source; the map is in the program, compressed.
      sourcemap: "inline",
      metafile: true,
      compile: {
        outfile: built,
        // Settings are the environment and nothing else, whatever lies in the folder that the program is started in.
        autoloadDotenv: false,
        autoloadBunfig: false,
      },
    });
    if (unused().length > 0) throw new Error(`nothing to rewrite in ${unused().join(", ")}`);
    writeFileSync(`${outfile}.licenses`, licensesOf(Object.keys(metafile?.inputs ?? {})));
    renameSync(built, outfile);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const outfile = resolve(process.argv[2] ?? join(ROOT, "dist/postrider"));
  await build(outfile);
  console.log(`built ${outfile}, ${(Bun.file(outfile).size / 1e6).toFixed(0)} MB`);
}
