import { posix } from "node:path";
import {
  type CallExpression,
  type Expression,
  isArrowFunction,
  isCallExpression,
  isClassDeclaration,
  isClassStaticBlockDeclaration,
  isExportDeclaration,
  isFunctionDeclaration,
  isFunctionExpression,
  isIdentifier,
  isNewExpression,
  isNoSubstitutionTemplateLiteral,
  isPropertyAccessExpression,
  isPropertyDeclaration,
  isStringLiteral,
  isTemplateHead,
  isVariableStatement,
  type NewExpression,
  type Node,
  SyntaxKind,
} from "typescript/unstable/ast";
import { lineOf, type Source, walk } from "./source-files.ts";

/** A broken rule: `src/mail/x.ts:3: mail must not import store (../store/client.ts)`. */
export type Violation = string;
export type Rule = (source: Source) => Violation[];

const MIDDLE = ["core"] as const;
/** Which rooms a room may import, itself apart. A name with a slash is one file of a room. `*`: everything. */
export const ARROWS: Readonly<Record<string, readonly string[]>> = {
  core: [],
  mail: MIDDLE,
  smtp: MIDDLE,
  net: MIDDLE,
  store: MIDDLE,
  queue: MIDDLE,
  flows: ["mail", "smtp", "net", "store", "queue/port.ts", "core"],
  http: ["flows", "store", "queue/port.ts", "core"],
  wiring: ["*"],
  commands: ["*"],
  "app.ts": ["*"],
  "main.ts": ["*"],
  "config.ts": ["core"],
  "clock.ts": ["core"],
  "log.ts": [],
  "metrics.ts": [],
};
/** May be imported from everywhere but core, which logs nothing. */
const LOG = "log.ts";
/** Its types may be imported from everywhere but core; its values only by those who start the service. */
const CONFIG = "config.ts";
const STARTERS: readonly string[] = ["main.ts", "app.ts"];

/** Where each library may be imported: a room, or one file. */
export const LIBRARY_HOMES: Readonly<Record<string, readonly string[]>> = {
  elysia: ["http"],
  "@elysiajs/swagger": ["http"],
  "swagger-ui-dist": ["wiring"],
  "@sinclair/typebox": ["http", "core"],
  bullmq: ["queue"],
  ioredis: ["queue"],
  "rate-limiter-flexible": ["queue"],
  "@libsql/client": ["store"],
  libsql: ["store"],
  "postal-mime": ["mail"],
  nodemailer: ["mail"],
  mailauth: ["mail"],
  "html-to-text": ["mail"],
  "iconv-lite": ["mail"],
  liquidjs: ["core", "mail"],
  "dns-packet": ["net"],
  "ipaddr.js": ["net", "core/networks.ts", "smtp/peer.ts", "smtp/proxy-header.ts"],
  tldts: ["core", "net"],
  "@logtape/logtape": ["log.ts"],
  "prom-client": ["metrics.ts"],
};

/** Built-ins that do no input or output: all that core may use. */
const PURE_BUILTINS: ReadonlySet<string> = new Set([
  "node:buffer",
  "node:crypto",
  "node:path",
  "node:querystring",
  "node:string_decoder",
  "node:url",
  "node:util",
]);

/** Lines a file may have, and the files that may have more, since they are tables of data. */
export const MAX_LINES = 300;
const LONG_TABLES: ReadonlySet<string> = new Set(["src/config.ts"]);

/** Names by which the system's clock and timers are asked. */
const CLOCK_CALLS: ReadonlySet<string> = new Set([
  ...["Date", "Date.now", "performance.now", "process.hrtime", "process.hrtime.bigint", "Bun.nanoseconds"],
  ...["setTimeout", "setInterval", "Bun.sleep", "Bun.sleepSync", "AbortSignal.timeout"],
]);
const CLOCK_MODULES: ReadonlySet<string> = new Set(["node:timers", "node:timers/promises", "timers"]);

/** Calls that a constant may make while its file is imported: they compute from what they are given and touch nothing. */
const PURE_CALLS: ReadonlySet<string> = new Set([
  ...["Object.freeze", "Object.fromEntries", "Object.keys", "Object.values", "Object.entries"],
  ...["Array", "Array.from", "Array.of", "Number", "String", "BigInt", "Symbol", "RegExp"],
  ...["Buffer.from", "Buffer.alloc", "Buffer.concat", "Uint8Array.from", "Uint8Array.of"],
  ...["ipaddr.parseCIDR", "ipaddr.IPv4.parseCIDR", "ipaddr.IPv6.parseCIDR", "ipaddr.parse"],
  // Our own makers of constants: schemas, SMTP replies and texts of SQL.
  ...[
    "Nullable",
    "OneOf",
    "Search",
    "reply",
    "rowsText",
    "movableText",
    "numbered",
    "standingInbox",
    "inForce",
  ],
  // A command's text and flags, and the columns of its table.
  ...["defineCommand", "field"],
]);
const PURE_NAMESPACES: ReadonlySet<string> = new Set(["Type", "t", "Math"]);
const PURE_METHODS: ReadonlySet<string> = new Set([
  ...[
    "map",
    "flatMap",
    "filter",
    "concat",
    "join",
    "slice",
    "split",
    "sort",
    "toSorted",
    "reverse",
    "reduce",
  ],
  ...[
    "keys",
    "values",
    "entries",
    "includes",
    "has",
    "get",
    "toString",
    "toUpperCase",
    "toLowerCase",
    "trim",
  ],
  ...["replace", "replaceAll", "repeat", "padStart", "padEnd", "at", "fill"],
]);
const PURE_CLASSES: ReadonlySet<string> = new Set([
  ...["Set", "Map", "WeakMap", "WeakSet", "RegExp", "URL", "TextEncoder", "TextDecoder"],
  ...["Uint8Array", "Uint16Array", "Uint32Array", "Int8Array", "Int32Array", "Array", "Date"],
]);

/** Statements that do nothing when their file is imported. Variables, classes and exports are looked into. */
const QUIET_STATEMENTS: ReadonlySet<SyntaxKind> = new Set([
  SyntaxKind.ImportDeclaration,
  SyntaxKind.ExportDeclaration,
  SyntaxKind.InterfaceDeclaration,
  SyntaxKind.TypeAliasDeclaration,
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.EnumDeclaration,
  SyntaxKind.ModuleDeclaration,
  SyntaxKind.EmptyStatement,
]);

const SQL =
  /^\s*(SELECT\s|INSERT\s+(INTO|OR)\s|REPLACE\s+INTO\s|UPDATE\s|DELETE\s+FROM\s|CREATE\s+(TABLE|UNIQUE|INDEX|VIEW|TRIGGER|VIRTUAL)\s|ALTER\s+TABLE\s|DROP\s+(TABLE|INDEX|VIEW|TRIGGER)\s|PRAGMA\s|WITH\s+\w+(\s*\([^)]*\))?\s+AS\s|VACUUM\b|BEGIN(\s|;|$)|COMMIT(\s|;|$))/;

/** The room of a file: its folder in `src`, or its own name where it lies at the top. */
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
      // What lies outside of src (migrations, package.json) is text, not code.
      if (!target.startsWith("src/")) return [];
      const file = target.slice("src/".length);
      const fine =
        roomOf(target) === room ||
        allowed.includes("*") ||
        allowed.includes(roomOf(target)) ||
        allowed.includes(file) ||
        (room !== "core" && (file === LOG || (file === CONFIG && typeOnly)));
      return fine ? [] : [say(source, line, `${room} must not import ${file}`)];
    });
}

/** Only those who start the service import values of the configuration; everybody else is handed theirs. */
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

/** Each library is known in its home alone. */
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
  if (source.path === "src/clock.ts") return [];
  const found = source.imports
    .filter(({ specifier }) => CLOCK_MODULES.has(specifier))
    .map(({ line }) => line);
  walk(source.tree, (node) => {
    if (isCallExpression(node) && CLOCK_CALLS.has(calleeOf(node))) found.push(lineOf(node));
    else if (isNewExpression(node) && calleeOf(node) === "Date" && !node.arguments?.length)
      found.push(lineOf(node));
    // Also where it is handed on, as in `now: Date.now`.
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
const ENTRIES: ReadonlySet<string> = new Set([
  "src/main.ts",
  "src/wiring/inspect-worker.ts",
  "src/wiring/render-worker.ts",
  "src/wiring/write-worker.ts",
]);

/** Importing a file does nothing: no connection, no file, no timer, no secret. */
export function quietImport(source: Source): Violation[] {
  if (ENTRIES.has(source.path)) return [];
  const found: Violation[] = [];
  const complain = (node: Node): void => {
    found.push(
      say(source, lineOf(node), `work at import time: ${node.getText().slice(0, 60).split("\n")[0]}`),
    );
  };
  const inspect = inspector(source, complain);
  for (const statement of source.tree.statements) {
    if (isVariableStatement(statement)) inspect(statement.declarationList);
    else if (isClassDeclaration(statement)) classParts(statement).forEach(inspect);
    else if (!QUIET_STATEMENTS.has(statement.kind)) complain(statement);
  }
  return found;
}

/** What a class runs when it is declared: its parent expression, static values and static blocks. */
function classParts(declaration: Node): Node[] {
  const parts: Node[] = [];
  declaration.forEachChild((child) => {
    const isStatic = /^\s*(\w+\s+)*static\b/.test(child.getText());
    if (isClassStaticBlockDeclaration(child)) parts.push(child);
    if (isPropertyDeclaration(child) && isStatic && child.initializer) parts.push(child.initializer);
    if (child.kind === SyntaxKind.HeritageClause && child.getText().startsWith("extends")) parts.push(child);
    if (child.kind === SyntaxKind.Decorator) parts.push(child);
  });
  return parts;
}

/** Looks for calls that run at once, and through functions of the same file that they call. */
function inspector(source: Source, complain: (node: Node) => void): (node: Node) => void {
  const functions = new Map<string, Node>();
  for (const statement of source.tree.statements)
    if (isFunctionDeclaration(statement) && statement.name && statement.body)
      functions.set(statement.name.text, statement.body);
  const seen = new Set<string>();
  const inspect = (node: Node): void => {
    if (isLater(node)) return;
    if (node.kind === SyntaxKind.AwaitExpression || isClassStaticBlockDeclaration(node)) complain(node);
    if (node.kind === SyntaxKind.TaggedTemplateExpression && !node.getText().startsWith("String.raw"))
      complain(node);
    if (isNewExpression(node) && !PURE_CLASSES.has(calleeOf(node))) complain(node);
    if (isCallExpression(node)) {
      const name = calleeOf(node);
      const body = functions.get(name);
      if (body !== undefined && !seen.has(name)) {
        seen.add(name);
        inspect(body);
      } else if (body === undefined && !isPureCall(node.expression)) complain(node);
    }
    node.forEachChild(inspect);
  };
  return inspect;
}

/** Whether a function is only made, not called: one that is handed to a call may run within it. */
function isLater(node: Node): boolean {
  const later =
    node.kind === SyntaxKind.MethodDeclaration ||
    node.kind === SyntaxKind.GetAccessor ||
    node.kind === SyntaxKind.SetAccessor ||
    isArrowFunction(node) ||
    isFunctionExpression(node) ||
    isFunctionDeclaration(node);
  return later && !isCallExpression(node.parent);
}

function isPureCall(callee: Expression): boolean {
  const name = callee.getText();
  if (PURE_CALLS.has(name)) return true;
  if (!isPropertyAccessExpression(callee)) return false;
  const receiver = callee.expression;
  return (
    (isIdentifier(receiver) && PURE_NAMESPACES.has(receiver.text)) ||
    (PURE_METHODS.has(callee.name.text) && !/^(process|Bun|fs)\b/.test(name))
  );
}

/** A file is small enough to be read at once. */
export function length(source: Source): Violation[] {
  const lines = source.text.split("\n").length - (source.text.endsWith("\n") ? 1 : 0);
  if (lines <= MAX_LINES || LONG_TABLES.has(source.path)) return [];
  return [say(source, MAX_LINES + 1, `${lines} lines, ${MAX_LINES} are allowed`)];
}

/** No barrel files: each import names the file that has what it wants. */
export function barrels(source: Source): Violation[] {
  const statements = source.tree.statements.filter((statement) => !isOnlyForBarrels(statement));
  return source.tree.statements.length > 0 && statements.length === 0
    ? [say(source, 1, "a file that only hands on what others export")]
    : [];
}

/** Imports and re-exports: what a barrel is made of. */
function isOnlyForBarrels(statement: Node): boolean {
  return statement.kind === SyntaxKind.ImportDeclaration || isExportDeclaration(statement);
}
