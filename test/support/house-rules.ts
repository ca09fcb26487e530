import { posix } from "node:path";
import {
  type CallExpression,
  isArrayLiteralExpression,
  isCallExpression,
  isExportDeclaration,
  isNewExpression,
  isNoSubstitutionTemplateLiteral,
  isObjectLiteralExpression,
  isPropertyAccessExpression,
  isSpreadAssignment,
  isSpreadElement,
  isStringLiteral,
  isTemplateHead,
  type NewExpression,
  type Node,
  SyntaxKind,
} from "typescript/unstable/ast";
import { lineOf, type Source, walk } from "./source-files.ts";

/** A broken rule: `src/mail/x.ts:3: mail must not import store (../store/client.ts)`. */
export type Violation = string;
export type Rule = (source: Source) => Violation[];

const MIDDLE = ["core"] as const;
/** The rooms that a room may import besides itself. A name with a slash is one file. `*`: everything. */
export const ARROWS: Readonly<Record<string, readonly string[]>> = {
  core: [],
  mail: MIDDLE,
  smtp: MIDDLE,
  net: MIDDLE,
  store: MIDDLE,
  queue: MIDDLE,
  flows: ["mail", "smtp", "net", "store", "queue/port.ts", "queue/hint.ts", "core"],
  http: ["flows", "store", "queue/port.ts", "core", "mcp", "version.ts"],
  mcp: ["core"],
  // It runs in browsers, so it has nothing of the server.
  ui: [],
  wiring: ["*"],
  commands: ["*"],
  "app.ts": ["*"],
  "main.ts": ["*"],
  "config.ts": ["core", "config"],
  config: ["core"],
  "clock.ts": ["core"],
  "log.ts": [],
  "metrics.ts": ["version.ts"],
  "version.ts": [],
};
/** Every room but these may import it. Core logs nothing, and the dashboard runs in browsers. */
const LOG = "log.ts";
const WITHOUT_LOG: readonly string[] = ["core", "ui"];
/** Every room but these may import its types. Only the files that start the service may import its values. */
const CONFIG = "config.ts";
const CONFIG_ROOM = "config";
const STARTERS: readonly string[] = ["main.ts", "app.ts"];

/** The home of each library, which alone may import it: a room or one file. */
export const LIBRARY_HOMES: Readonly<Record<string, readonly string[]>> = {
  elysia: ["http/server/router.ts"],
  "@elysiajs/swagger": ["http/openapi/reference-page.ts"],
  "@scalar/api-reference": ["wiring"],
  "chrono-node": ["http"],
  "csv-parse": ["flows/imports/csv-rows.ts"],
  "csv-stringify": ["http/routing/whole-list.ts"],
  "@modelcontextprotocol/server": ["mcp"],
  "swagger-ui-dist": ["wiring"],
  "@sinclair/typebox": ["http", "core", "mcp"],
  bullmq: ["queue"],
  ioredis: ["queue"],
  libsql: ["store"],
  "postal-mime": ["mail"],
  nodemailer: ["mail"],
  "age-encryption": ["wiring/store/sealed-copy.ts"],
  mailauth: ["mail"],
  "html-to-text": ["mail"],
  "iconv-lite": ["mail"],
  "ical.js": ["mail/reading/invitation.ts"],
  saxes: ["mail/reports/dmarc-report.ts"],
  liquidjs: ["core", "mail"],
  "dns-packet": ["net"],
  "ipaddr.js": ["net", "core/networks.ts", "smtp/listener/peer.ts", "smtp/listener/proxy-header.ts"],
  "openid-client": ["net/openid.ts"],
  tldts: ["core", "net"],
  "@logtape/logtape": ["log.ts"],
  "prom-client": ["metrics.ts"],
  preact: ["ui"],
  "@preact/signals": ["ui"],
  "preact-render-to-string": ["ui"],
  uplot: ["ui"],
};

/** Built-ins that do no input or output, the only ones that core may use. */
const PURE_BUILTINS: ReadonlySet<string> = new Set([
  "node:async_hooks",
  "node:buffer",
  "node:crypto",
  "node:path",
  "node:querystring",
  "node:string_decoder",
  "node:url",
  "node:util",
]);

/** Lines a file may have. Tables of data may have more. */
export const MAX_LINES = 300;
const LONG_TABLES: ReadonlySet<string> = new Set(["src/config/settings.ts"]);

/** Calls that read the system's clock or set timers. */
const CLOCK_CALLS: ReadonlySet<string> = new Set([
  "Date",
  "Date.now",
  "performance.now",
  "process.hrtime",
  "process.hrtime.bigint",
  "Bun.nanoseconds",
  "setTimeout",
  "setInterval",
  "Bun.sleep",
  "Bun.sleepSync",
  "AbortSignal.timeout",
]);
const CLOCK_MODULES: ReadonlySet<string> = new Set(["node:timers", "node:timers/promises", "timers"]);

const SQL =
  /^\s*(SELECT\s|INSERT\s+(INTO|OR)\s|REPLACE\s+INTO\s|UPDATE\s|DELETE\s+FROM\s|CREATE\s+(TABLE|UNIQUE|INDEX|VIEW|TRIGGER|VIRTUAL)\s|ALTER\s+TABLE\s|DROP\s+(TABLE|INDEX|VIEW|TRIGGER)\s|PRAGMA\s|WITH\s+\w+(\s*\([^)]*\))?\s+AS\s|VACUUM\b|BEGIN(\s|;|$)|COMMIT(\s|;|$))/;

/** Returns the room of a file: its folder in `src`, or its own name if it is at the top. */
function roomOf(path: string): string {
  const parts = path.split("/");
  return parts[1] ?? path;
}

function say(source: Source, line: number, sentence: string): Violation {
  return `${source.path}:${line}: ${sentence}`;
}

/** Rooms import downwards only. */
export function arrows(source: Source): Violation[] {
  const room = roomOf(source.path);
  const allowed = ARROWS[room];
  if (allowed === undefined) return [say(source, 1, `${room} is no room that the arrows know`)];
  return source.imports
    .filter(({ specifier }) => specifier.startsWith("."))
    .flatMap(({ specifier, typeOnly, line }) => {
      const target = posix.join(posix.dirname(source.path), specifier);
      // Files outside src (migrations, package.json) are text, not code.
      if (!target.startsWith("src/")) return [];
      const file = target.slice("src/".length);
      const fine =
        roomOf(target) === room ||
        allowed.includes("*") ||
        allowed.includes(roomOf(target)) ||
        allowed.includes(file) ||
        (!WITHOUT_LOG.includes(room) &&
          (file === LOG || (typeOnly && [CONFIG, CONFIG_ROOM].includes(roomOf(target)))));
      return fine ? [] : [say(source, line, `${room} must not import ${file}`)];
    });
}

/** Only the files that start the service import values of the configuration. Others receive them as arguments. */
export function configValues(source: Source): Violation[] {
  if (STARTERS.includes(roomOf(source.path))) return [];
  return source.imports
    .filter(({ specifier, typeOnly }) => /(^|\/)config\.ts$/.test(specifier) && !typeOnly)
    .map(({ line }) => say(source, line, "values of config.ts are for main.ts and app.ts only"));
}

/** The package that a specifier names: `mailauth` of `mailauth/lib/spf`, `@a/b` of `@a/b/c`. */
function packageOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

/** Each library is imported only in its home. */
export function libraries(source: Source): Violation[] {
  return source.imports
    .filter(({ specifier }) => !/^(\.|node:|bun$|bun:)/.test(specifier))
    .flatMap(({ specifier, line }) => {
      const name = packageOf(specifier);
      const homes = LIBRARY_HOMES[name];
      if (homes === undefined) return [say(source, line, `${name} has no home yet`)];
      const file = source.path.slice("src/".length);
      if (homes.includes(file) || homes.includes(roomOf(source.path))) return [];
      return [say(source, line, `${name} belongs to ${homes.join(" or ")}`)];
    });
}

/** Core does no input or output. */
export function coreIsPure(source: Source): Violation[] {
  if (roomOf(source.path) !== "core") return [];
  return source.imports
    .filter(({ specifier, typeOnly }) => /^(node:|bun)/.test(specifier) && !typeOnly)
    .filter(({ specifier }) => !PURE_BUILTINS.has(specifier))
    .map(({ specifier, line }) => say(source, line, `core does no input or output, ${specifier} does`));
}

/** The environment is read in config.ts; main.ts hands it over. */
export function environment(source: Source): Violation[] {
  if (source.path === "src/config.ts") return [];
  const found: Violation[] = [];
  walk(source.tree, (node) => {
    if (!isPropertyAccessExpression(node)) return;
    if (!["process.env", "Bun.env", "import.meta.env"].includes(node.getText())) return;
    const handedOver =
      source.path === "src/main.ts" &&
      isCallExpression(node.parent) &&
      calleeOf(node.parent) === "loadConfig";
    if (!handedOver) found.push(say(source, lineOf(node), "the environment is read in config.ts only"));
  });
  return found;
}

function calleeOf(call: CallExpression | NewExpression): string {
  return call.expression.getText().replace(/^globalThis\./, "");
}

/** The time comes from the injected clock. */
export function clock(source: Source): Violation[] {
  // The dashboard runs in browsers, which have no injected clock.
  if (source.path === "src/clock.ts" || roomOf(source.path) === "ui") return [];
  const found = source.imports
    .filter(({ specifier }) => CLOCK_MODULES.has(specifier))
    .map(({ line }) => line);
  walk(source.tree, (node) => {
    if (isCallExpression(node) && CLOCK_CALLS.has(calleeOf(node))) found.push(lineOf(node));
    else if (isNewExpression(node) && calleeOf(node) === "Date" && !node.arguments?.length)
      found.push(lineOf(node));
    // Also checks references such as `now: Date.now`.
    else if (isPropertyAccessExpression(node) && !isCallee(node) && CLOCK_CALLS.has(node.getText()))
      found.push(lineOf(node));
  });
  return found.map((line) => say(source, line, "time is asked of the injected clock only"));
}

function isCallee(node: Node): boolean {
  return isCallExpression(node.parent) && node.parent.expression === node;
}

/** SQL is written in the store. */
export function sql(source: Source): Violation[] {
  if (roomOf(source.path) === "store") return [];
  const found: Violation[] = [];
  walk(source.tree, (node) => {
    const literal = isStringLiteral(node) || isNoSubstitutionTemplateLiteral(node) || isTemplateHead(node);
    if (literal && SQL.test(node.text))
      found.push(say(source, lineOf(node), "SQL is written in the store only"));
  });
  return found;
}

/** Files that are started, not imported: the program, and the entries of its threads. */
export const ENTRIES: ReadonlySet<string> = new Set([
  "src/main.ts",
  "src/ui/main.tsx",
  "src/ui/start.ts",
  "src/wiring/cpu/inspect-worker.ts",
  "src/wiring/cpu/render-worker.ts",
  "src/wiring/cpu/write-worker.ts",
]);

/** A file is short enough to read in one go. */
export function length(source: Source): Violation[] {
  const lines = source.text.split("\n").length - (source.text.endsWith("\n") ? 1 : 0);
  if (lines <= MAX_LINES || LONG_TABLES.has(source.path)) return [];
  return [say(source, MAX_LINES + 1, `${lines} lines, ${MAX_LINES} are allowed`)];
}

/** A literal is not spread where it stands: that only steers the formatter. */
export function plainLiterals(source: Source): Violation[] {
  const found: Violation[] = [];
  walk(source.tree, (node) => {
    if (!isSpreadAssignment(node) && !isSpreadElement(node)) return;
    const { expression } = node;
    if (isObjectLiteralExpression(expression) || isArrayLiteralExpression(expression))
      found.push(say(source, lineOf(node), "a literal is spread: write its parts in its place"));
  });
  return found;
}

/** No barrel files: each import names the file that defines the name. */
export function barrels(source: Source): Violation[] {
  const statements = source.tree.statements.filter((statement) => !isOnlyForBarrels(statement));
  return source.tree.statements.length > 0 && statements.length === 0
    ? [say(source, 1, "a file that only hands on what others export")]
    : [];
}

/** Imports and re-exports, the content of a barrel file. */
function isOnlyForBarrels(statement: Node): boolean {
  return statement.kind === SyntaxKind.ImportDeclaration || isExportDeclaration(statement);
}

/** Returns the circles of imports among files. */
export function importCircles(sources: readonly Source[]): Violation[] {
  return circles(importsOf(sources));
}

/** Returns the circles of imports among the folders of `src`. A file directly in `src` belongs to none. */
export function folderCircles(sources: readonly Source[]): Violation[] {
  const folders = new Map<string, Set<string>>();
  for (const [path, imported] of importsOf(sources)) {
    const folder = posix.dirname(path);
    const others = imported.map((target) => posix.dirname(target)).filter((other) => other !== folder);
    const known = folders.get(folder) ?? new Set();
    folders.set(folder, known.union(new Set(others)));
  }
  folders.delete("src");
  return circles(folders);
}

/** Maximum number of files in a folder. */
export const MAX_FILES = 20;

/** Returns the folders with too many files. */
export function crowdedFolders(paths: readonly string[]): Violation[] {
  return [...Map.groupBy(paths, (path) => posix.dirname(path))]
    .filter(([, files]) => files.length > MAX_FILES)
    .map(([folder, files]) => `${folder}: ${files.length} files, ${MAX_FILES} are allowed`);
}

/** Returns our files that each file imports. */
function importsOf(sources: readonly Source[]): Map<string, string[]> {
  return new Map(
    sources.map(({ path, imports: found }) => [
      path,
      found
        .filter(({ specifier }) => specifier.startsWith("."))
        .map(({ specifier }) => posix.join(posix.dirname(path), specifier)),
    ]),
  );
}

function circles(imports: ReadonlyMap<string, Iterable<string>>): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path);
    if (start >= 0) found.push([...trail.slice(start), path].join(" → "));
    if (start >= 0 || done.has(path)) return;
    for (const next of imports.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of [...imports.keys()].sort()) visit(path, []);
  return found;
}
