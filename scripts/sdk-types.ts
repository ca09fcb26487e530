// `bun scripts/sdk-types.ts` writes sdk/src/api.ts: the types of the API, from the document that the service serves, and sdk/types.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApp } from "../src/app.ts";
import { systemClock } from "../src/clock.ts";
import { loadConfig } from "../src/config.ts";
import { writeDeclarations } from "./sdk-declarations.ts";

const ROOT = join(import.meta.dir, "..");
/** The generator: a package of the SDK's folder, which `scripts/setup.sh --test` installs. */
export const GENERATOR = join(ROOT, "sdk/node_modules/openapi-typescript/bin/cli.js");
/** The file with the types. */
export const TYPES_FILE = join(ROOT, "sdk/src/api.ts");

const NOTE = "// Made by `bun scripts/sdk-types.ts` from the OpenAPI document. Changes by hand are lost.\n";
/** Schemas become types under their own names. A field with a default may still be left out. */
const OPTIONS = ["--root-types", "--root-types-no-schema-prefix", "--default-non-nullable=false"];

/** Returns the types of an OpenAPI document as openapi-typescript writes them. */
export function typesOf(document: object): string {
  const folder = mkdtempSync(join(tmpdir(), "sdk-types-"));
  try {
    const input = join(folder, "document.json");
    const output = join(folder, "types.ts");
    writeFileSync(input, JSON.stringify(document));
    const { exitCode, stderr } = Bun.spawnSync([
      process.execPath,
      GENERATOR,
      input,
      "-o",
      output,
      ...OPTIONS,
    ]);
    if (exitCode !== 0) throw new Error(`openapi-typescript failed: ${stderr.toString()}`);
    return readFileSync(output, "utf8");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Operation {
  parameters?: { in?: string }[];
  responses: Record<string, { description: string; content?: object }>;
}
interface Document {
  openapi: string;
  info: object;
  paths: Record<string, Record<string, Operation>>;
  webhooks: object;
  components: { schemas: object };
}

/** Leaves out the examples of bodies. Those of fields stay. */
function withoutExamples<Part>(part: Part): Part {
  return JSON.parse(JSON.stringify(part, (key, value) => (key === "example" ? undefined : value))) as Part;
}

/** Returns the part of the document that the client's types are made of: parameters, bodies and answers that are no errors. */
function clientPart({ openapi, info, paths, webhooks, components }: Document): object {
  const kept = Object.entries(paths).filter(([path]) => path.startsWith("/v1/"));
  const operation = ({ parameters = [], responses, ...rest }: Operation) => ({
    ...withoutExamples(rest),
    // Headers are the client's own business.
    parameters: parameters.filter((parameter) => ["path", "query"].includes(parameter.in ?? "")),
    responses: Object.fromEntries(
      Object.entries(responses)
        .filter(([status]) => status.startsWith("2"))
        .map(([status, { description, content }]) => [status, withoutExamples({ description, content })]),
    ),
  });
  const shown = kept.map(([path, methods]) => [
    path,
    Object.fromEntries(Object.entries(methods).map(([method, one]) => [method, operation(one)])),
  ]);
  const part = {
    openapi,
    info,
    paths: Object.fromEntries(shown),
    webhooks,
    components: { schemas: components.schemas },
  };
  return part;
}

/** Returns the content of `sdk/src/api.ts` for a document. */
export function sdkTypes(document: object): string {
  const types = typesOf(clientPart(document as Document))
    // The generator's own comment, and its type of headers, of which the document names none here.
    .replace(/^\/\*\*[\s\S]*?\*\/\n/, "")
    .replace(/^ *headers: \{\n *\[name: string\]: unknown;\n *\};\n/gm, "")
    // Types that the client does not use, and one with the name of a global one.
    .replace(/^export interface (?:paths|webhooks) \{\n[\s\S]*?\n\}\n/gm, "")
    .replace(/^export type (?:Error|\$defs)\b.*\n/gm, "")
    // Editors then still propose the known values.
    .replace(/(?<=" ?\)? \| )string(?=;| \|)/g, "(string & {})");
  return NOTE + types;
}

/** Starts the service in a temporary folder and returns its document. */
async function currentDocument(): Promise<object> {
  const folder = mkdtempSync(join(tmpdir(), "sdk-document-"));
  const app = await startApp(
    loadConfig({ HOST: "127.0.0.1", PORT: "0", SMTP_PORT: "0", DATA_DIR: folder, LOG_LEVEL: "error" }),
    systemClock,
  );
  try {
    return (await (await fetch(`http://127.0.0.1:${app.ports.http}/docs/json`)).json()) as object;
  } finally {
    await app.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  writeFileSync(TYPES_FILE, sdkTypes(await currentDocument()));
  writeDeclarations();
  console.log(`wrote ${TYPES_FILE} and sdk/types`);
  process.exit(0);
}
