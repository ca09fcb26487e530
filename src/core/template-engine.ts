import { type Context, type Emitter, type FilterImplOptions, filters, Liquid, type Template } from "liquidjs";
import { MAX_BODY_PART_BYTES } from "./send-rules.ts";

/** What rendering one part of a template (subject, html or text) may cost. */
export interface RenderLimits {
  /** Characters within placeholders and tags: parsing takes time by these, not by the text around them. */
  codeChars: number;
  /** Milliseconds of rendering: loops within loops. */
  renderMs: number;
  /** Characters and list items handled by filters, ranges, captures and output together. */
  workUnits: number;
}

export const RENDER_LIMITS: RenderLimits = {
  codeChars: 100_000,
  renderMs: 1000,
  workUnits: 16 * 1024 * 1024,
};

/** Lists and objects within one another that a filter or the output takes: printing them takes the stack by their depth. */
export const MAX_VALUE_DEPTH = 100;

/** Tags that read other files, or make sense only with one. A template stands for itself. */
const FILE_TAGS = ["include", "render", "layout", "block"];

/**
 * Filters that take an expression as text: no analysis sees the variables in it, and its work between two looks at
 * the clock has no bound.
 */
const EXPRESSION_FILTERS = /_exp$/;

/** Filters whose output is escaped already: as the last of a placeholder they are not escaped again. */
const ESCAPING_FILTERS: ReadonlySet<string> = new Set(["escape", "xml_escape", "escape_once"]);

/** Filters that only look at a value's outside, whatever its size. */
const LIGHT_FILTERS: ReadonlySet<string> = new Set(["size", "first", "last", "default"]);

/** How the values of placeholders go into the output. */
export type Escaping = "html" | "none";

/**
 * A Liquid of our own: no files, own properties only, unknown filters refused, and every piece of work counted against
 * the limits, so that neither a template nor its data can hold the process.
 */
export function templateEngine(escaping: Escaping, limits: RenderLimits): Liquid {
  const engine = new Liquid({
    // Lookups in an empty mapping instead of the file system, whatever tag or filter would ask.
    templates: {},
    relativeReference: false,
    dynamicPartials: false,
    // Against reading the prototypes behind the data (constructor, __proto__).
    ownPropertyOnly: true,
    strictFilters: true,
    parseLimit: MAX_BODY_PART_BYTES,
    renderLimit: limits.renderMs,
    memoryLimit: limits.workUnits,
    ...(escaping === "html" ? { outputEscape: metered(builtIn("escape")) } : {}),
  });
  for (const name of FILE_TAGS) delete engine.tags[name];
  for (const [name, filter] of Object.entries(engine.filters)) {
    if (EXPRESSION_FILTERS.test(name)) delete engine.filters[name];
    else if (!LIGHT_FILTERS.has(name)) engine.registerFilter(name, meteredFilter(name, filter));
  }
  meterOutput(engine);
  return engine;
}

type Handler = Extract<FilterImplOptions, (...args: never[]) => unknown>;

function builtIn(name: string): Handler {
  const filter = filters[name];
  if (typeof filter !== "function") throw new Error(`liquidjs has no filter ${name}`);
  return filter;
}

function meteredFilter(name: string, filter: FilterImplOptions): FilterImplOptions {
  if (typeof filter !== "function") return { ...filter, handler: metered(filter.handler) };
  return ESCAPING_FILTERS.has(name) ? { raw: true, handler: metered(filter) } : metered(filter);
}

/** The filter, its arguments charged first: a list that holds another many times over is far larger than it looks. */
function metered(handler: Handler): Handler {
  return function (value, ...args) {
    charge(this.context, value);
    for (const arg of args) charge(this.context, arg);
    return handler.call(this, value, ...args);
  };
}

/** Takes the whole of a value off what is left of the context's work. Throws where it is more than that, or too deep. */
function charge({ memoryLimit }: Context, root: unknown): void {
  let level: unknown[] = [root];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_VALUE_DEPTH) throw new Error(`a value is nested more than ${MAX_VALUE_DEPTH} deep`);
    const next: unknown[] = [];
    for (const value of level) {
      if (typeof value === "string") memoryLimit.use(value.length);
      else if (typeof value === "object" && value !== null) {
        const items = Array.isArray(value) ? value : Object.values(value);
        memoryLimit.use(items.length);
        for (const item of items) next.push(item);
      }
    }
    level = next;
  }
}

/** All output goes through counting buffers, that of `capture` included: the library itself lets them grow. */
function meterOutput({ renderer }: Liquid): void {
  const renderTemplates = renderer.renderTemplates.bind(renderer);
  renderer.renderTemplates = (templates: Template[], context: Context, emitter?: Emitter) =>
    renderTemplates(templates, context, emitter ?? meteredBuffer(context));
}

function meteredBuffer(context: Context): Emitter {
  return {
    buffer: "",
    write(value: unknown) {
      charge(context, value);
      this.buffer += textOf(value);
    },
  };
}

/** A value as Liquid prints it. */
function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return Array.isArray(value) ? value.map(textOf).join("") : String(value);
}

/** Whether the characters within a template's placeholders and tags are more than `limit`. */
export function hasTooMuchCode(source: string, limit: number): boolean {
  let code = 0;
  for (let at = nextOpening(source, 0); at >= 0; at = nextOpening(source, at)) {
    const end = source.indexOf(source[at + 1] === "%" ? "%}" : "}}", at + 2);
    // What is never closed is a syntax error, found at once.
    if (end < 0) return false;
    code += end + 2 - at;
    if (code > limit) return true;
    at = end + 2;
  }
  return false;
}

/** Where the next `{{` or `{%` stands at or after `from`; -1: nowhere. */
function nextOpening(source: string, from: number): number {
  for (let at = source.indexOf("{", from); at >= 0; at = source.indexOf("{", at + 1))
    if (source[at + 1] === "{" || source[at + 1] === "%") return at;
  return -1;
}
