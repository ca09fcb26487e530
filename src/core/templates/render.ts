import {
  AssertionError,
  Context,
  type Liquid,
  LiquidError,
  type Template,
  type Variable,
  Drop,
} from "liquidjs";
import { type AppError, invalid } from "../errors.ts";
import { firstChars } from "../text.ts";
import { MAX_SUBJECT_CHARS } from "../messages/send-item.ts";
import { MAX_BODY_PART_BYTES } from "../messages/send-rules.ts";
import { isLonger } from "../validation.ts";
import { type Escaping, hasTooMuchCode, RENDER_LIMITS, type RenderLimits, templateEngine } from "./engine.ts";
import { type TemplateVariable, variablesOf } from "./variables.ts";

export interface TemplateSource {
  subject: string;
  html: string | null;
  text: string | null;
}

export interface RenderedTemplate {
  subject: string;
  html: string | null;
  text: string | null;
  /** Variables of the template that the data lacks, as full paths in order of first use. They render as nothing. */
  missing: string[];
}

export type TemplatePart = keyof TemplateSource;

/** Longest failure message, in characters, because it may quote the template. */
const MAX_MESSAGE_CHARS = 300;

/** The parts in the order of reading. Only html is escaped. */
const PARTS: readonly { part: TemplatePart; escaping: Escaping }[] = [
  { part: "subject", escaping: "none" },
  { part: "html", escaping: "html" },
  { part: "text", escaping: "none" },
];

/** A template that cannot be parsed (`syntax`), or whose rendering failed at a limit or in a filter (`rendering`). */
export class RenderingFailure extends Error {
  readonly part: TemplatePart;
  readonly kind: "syntax" | "rendering";

  constructor(part: TemplatePart, kind: "syntax" | "rendering", message: string) {
    super(firstChars(message, MAX_MESSAGE_CHARS));
    this.name = "RenderingFailure";
    this.part = part;
    this.kind = kind;
  }
}

/** Returns the failure as the API's 422. `code` is set if the syntax is not the cause. */
export function refusalOf({ part, kind, message }: RenderingFailure, param: string = part): AppError {
  return kind === "rendering"
    ? invalid(param, message, "rendering_failure")
    : invalid(param, `is not valid Liquid: ${message}.`);
}

interface Parsed {
  part: TemplatePart;
  engine: Liquid;
  templates: Template[];
}

/**
 * Returns the variables that a template reads from its data, as full paths in order of first use.
 * @throws RenderingFailure of kind `syntax`
 */
export function templateVariables(source: TemplateSource, limits: RenderLimits = RENDER_LIMITS): string[] {
  return namesOf(parse(source, limits)).map(({ name }) => name);
}

/**
 * Renders a template. In html every value is escaped, unless it goes through `raw`. The subject is one line.
 * @throws RenderingFailure
 */
export function renderTemplate(
  source: TemplateSource,
  data: Readonly<Record<string, unknown>>,
  limits: RenderLimits = RENDER_LIMITS,
): RenderedTemplate {
  const parsed = parse(source, limits);
  const output: TemplateSource = { subject: "", html: null, text: null };
  makePrintable(data);
  for (const { part, engine, templates } of parsed) {
    const failed = failureOf(part, "rendering");
    output[part] = attempt(failed, () => String(engine.renderSync(templates, dataContext(engine, data))));
  }
  output.subject = oneLine(output.subject);
  checkSizes(output);
  return { ...output, missing: missingIn(parsed, data) };
}

function parse(source: TemplateSource, limits: RenderLimits): Parsed[] {
  return PARTS.flatMap(({ part, escaping }) => {
    const text = source[part];
    if (text === null) return [];
    const engine = templateEngine(escaping, limits);
    const failed = failureOf(part, "syntax");
    if (attempt(failed, () => hasTooMuchCode(engine, text, limits.codeChars)))
      throw new RenderingFailure(part, "syntax", `More than ${limits.codeChars} characters within tags.`);
    return [{ part, engine, templates: attempt(failed, () => engine.parse(text)) }];
  });
}

function namesOf(parsed: readonly Parsed[]): TemplateVariable[] {
  const found = new Map<string, TemplateVariable>();
  for (const { part, templates } of parsed)
    for (const variable of attempt(failureOf(part, "syntax"), () => variablesOf(templates)))
      if (!found.has(variable.name)) found.set(variable.name, variable);
  return [...found.values()];
}

function attempt<Result>(failed: (error: unknown) => RenderingFailure, run: () => Result): Result {
  try {
    return run();
  } catch (error) {
    throw failed(error);
  }
}

/**
 * Liquid's message about a template is shown to its author. Any other error (the stack, a filter) gets a general
 * message.
 */
function failureOf(part: TemplatePart, kind: RenderingFailure["kind"]): (error: unknown) => RenderingFailure {
  return (error) => {
    const known = error instanceof LiquidError || error instanceof AssertionError;
    const general = kind === "syntax" ? "The template cannot be read." : "The template cannot be rendered.";
    return new RenderingFailure(part, kind, known ? error.message : general);
  };
}

/** Replaces controls with spaces. A line break in the data must not start another header field (header injection). */
function oneLine(subject: string): string {
  return subject.replace(/\r\n|[\x00-\x1f\x7f]/g, " ");
}

function checkSizes({ subject, html, text }: TemplateSource): void {
  if (isLonger(subject, MAX_SUBJECT_CHARS))
    throw new RenderingFailure(
      "subject",
      "rendering",
      `Renders to more than ${MAX_SUBJECT_CHARS} characters.`,
    );
  for (const [part, body] of [
    ["html", html],
    ["text", text],
  ] as const)
    if (body !== null && Buffer.byteLength(body) > MAX_BODY_PART_BYTES)
      throw new RenderingFailure(part, "rendering", `Renders to more than ${MAX_BODY_PART_BYTES} bytes.`);
}

function missingIn(parsed: readonly Parsed[], data: Readonly<Record<string, unknown>>): string[] {
  const engine = parsed[0]?.engine;
  if (engine === undefined) return [];
  const context = dataContext(engine, data);
  return namesOf(parsed)
    .filter(({ variable }) => lookUp(context, variable) === undefined)
    .map(({ name }) => name);
}

/**
 * Returns the value at a variable's path by Liquid's own rules: undefined if there is none, null if the data has
 * null.
 */
function lookUp(context: Context, { segments }: Variable): unknown {
  let value: unknown = context.environments;
  for (const segment of segments) {
    if (value === null || value === undefined) return undefined;
    const key = typeof segment === "object" ? lookUp(context, segment) : segment;
    if (typeof key !== "string" && typeof key !== "number") return undefined;
    value = context.readProperty(value, key);
  }
  return value;
}

/** Properties that a template may read from the objects that loops make (`forloop`, `tablerowloop`). */
const LOOP_PROPERTIES: ReadonlySet<unknown> = new Set([
  "name",
  "length",
  "index",
  "index0",
  "rindex",
  "rindex0",
  "first",
  "last",
  "row",
  "col",
  "col0",
  "col_first",
  "col_last",
]);

/**
 * The library's context, limited to the data. Without the limit, templates could read prototypes of the library's own
 * objects, of loops and of literals such as `empty`. They could call functions in the data, and would read 0 for a
 * missing `size`.
 */
class DataContext extends Context {
  override readProperty(...[object, key]: Parameters<Context["readProperty"]>): unknown {
    if (object instanceof Drop && !LOOP_PROPERTIES.has(key)) return undefined;
    const isRoot = object === this.environments || object === this.globals;
    if (isRoot && !Object.hasOwn(object, String(key))) return undefined;
    return super.readProperty(object, key);
  }

  override spawn(scope: object = {}): DataContext {
    const { opts, sync, globals, strictVariables, ownPropertyOnly } = this;
    return new DataContext(scope, opts, { sync, globals, strictVariables, ownPropertyOnly }, this);
  }
}

/**
 * Returns the data for one rendering. It is a copy, because `increment` counts in it. It has no prototype, so that a
 * template cannot count in an inherited `__proto__`.
 */
function dataContext(engine: Liquid, data: Readonly<Record<string, unknown>>): DataContext {
  const root: Record<string, unknown> = Object.assign(Object.create(null), data);
  return new DataContext(root, engine.options, { sync: true }, { liquid: engine });
}

/**
 * Makes every object in the data printable. If an object has its own `toString` that is not a function, printing or
 * comparing it would end the rendering. Reading keys and making JSON do not see the change.
 */
function makePrintable(data: unknown): void {
  const open: unknown[] = [data];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== "object" || value === null) continue;
    if (Object.hasOwn(value, "toString"))
      Object.defineProperty(value, Symbol.toPrimitive, { value: asText, configurable: true });
    for (const item of Array.isArray(value) ? value : Object.values(value)) open.push(item);
  }
}

/** Returns the text of an object without its own `toString`. */
function asText(): string {
  return Object.prototype.toString.call({});
}
