import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type PackageFile, tarball } from "./tarball.ts";

/** The client's folder, seen from here. The built service does not have it. */
const SDK = join(import.meta.dir, "../../../sdk");
/** The types of the API are declarations already, and four fifths of all. So the ES modules take them from CommonJS. */
const FORMS = [
  { folder: "esm", format: "esm", type: "module", api: async () => 'export * from "../cjs/api.js";\n' },
  { folder: "cjs", format: "cjs", type: "commonjs", api: () => textOf("src/api.ts") },
] as const;
/** Makes `postrider/testing` import the client from `postrider`, so that an error has one class in both. */
const ONE_CLIENT: Bun.BunPlugin = {
  name: "one-client",
  setup(builder) {
    builder.onResolve({ filter: /\/client\.ts$/ }, () => ({ path: "./index.js", external: true }));
  },
};

/**
 * Returns the files of the client's npm package, without a compiler: its types are in `sdk/types`, made by
 * `bun scripts/sdk-types.ts`. A clone that only runs the service has no TypeScript, and serves its client too.
 */
export async function sdkFiles(): Promise<PackageFile[]> {
  const types = await declarations();
  const forms = FORMS.map(async ({ folder, format, type, api }) => {
    const built = {
      "index.js": await bundled("index.ts", format),
      "testing.js": await bundled("testing.ts", format),
    };
    const files = {
      ...built,
      ...types,
      "api.d.ts": await api(),
      "package.json": `${JSON.stringify({ type })}\n`,
    };
    return Object.entries(files).map(([name, content]) => ({ path: `dist/${folder}/${name}`, content }));
  });
  return [
    { path: "package.json", content: await manifest() },
    ...(await Promise.all(
      ["LICENSE", "README.md"].map(async (path) => ({ path, content: await textOf(path) })),
    )),
    ...(await Promise.all(forms)).flat(),
  ];
}

/** Returns the client as an npm package. */
export async function sdkTarball(): Promise<Uint8Array<ArrayBuffer>> {
  return tarball(await sdkFiles());
}

function textOf(path: string): Promise<string> {
  return Bun.file(join(SDK, path)).text();
}

/** Returns the package.json as users see it. */
async function manifest(): Promise<string> {
  const { devDependencies, scripts, ...rest } = JSON.parse(await textOf("package.json"));
  return `${JSON.stringify(rest, null, 2)}\n`;
}

async function bundled(entry: string, format: "esm" | "cjs"): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [join(SDK, "src", entry)],
    target: "node",
    format,
    plugins: entry === "index.ts" ? [] : [ONE_CLIENT],
  });
  // The bundler's comments name files by their path from the current folder.
  return ((await outputs[0]?.text()) ?? "").replace(/^\/\/ .*\.ts\n/gm, "");
}

/** Returns the types by their paths, without those of the API. */
async function declarations(): Promise<Record<string, string>> {
  const folder = join(SDK, "types");
  const paths = (await readdir(folder, { recursive: true })).filter((path) => path.endsWith(".d.ts")).sort();
  const texts = await Promise.all(
    paths.map(async (path) => [path, await textOf(join("types", path))] as const),
  );
  return Object.fromEntries(texts);
}
