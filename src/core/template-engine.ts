import {
  type Context,
  type Emitter,
  type FilterImplOptions,
  filters,
  Liquid,
  type Template,
  TokenKind,
  Tokenizer,
} from "liquidjs";
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

/** The limits in use. */
export const RENDER_LIMITS: RenderLimits = {
  codeChars: 100_000,
  renderMs: 1000,
  workUnits: 16 * 1024 * 1024,
};

/** Lists and objects within one another that a filter or the output takes: printing recurses once a level. */
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

/** Filters that take the same time whatever the size of their value. */
const LIGHT_FILTERS: ReadonlySet<string> = new Set(["size", "first", "last", "default"]);

/**
 * Filters that compare, or look up a path in, each item of a list. The library charges an item like a character, and a
 * path once: sorting two million items takes seconds, and a long path in each of some thousands takes hours.
 */
const ITEM_FILTERS: ReadonlySet<string> = new Set([
  "compact",
  "find",
  "find_index",
  "group_by",
  "has",
  "map",
  "reject",
  "sort",
  "sort_natural",
  "sum",
  "uniq",
  "where",
]);
/** What an item costs in such a filter, and a character of its path, in characters that another filter handles. */
const ITEM_UNITS = 64;
const PATH_CHAR_UNITS = 16;

/** Filters that put each item on a line of its own where they are told to, as far in as it lies deep. */
const INDENTING_FILTERS: ReadonlySet<string> = new Set(["json", "jsonify", "inspect"]);
/** Spaces a level at most, whatever is asked for (`JSON.stringify`). */
const MAX_INDENT_CHARS = 10;

/**
 * What a character of a date's format costs, in characters that another filter handles: two of them become two dozen, each
 * pair by a search of its own. The library charges none of that.
 */
const FORMAT_CHAR_UNITS = 16;

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
  if (ITEM_FILTERS.has(name)) return metered(meteredByItem(filter));
  if (INDENTING_FILTERS.has(name)) return metered(meteredByIndent(filter));
  if (name === "date") return metered(meteredByFormat(filter));
  return ESCAPING_FILTERS.has(name) ? { raw: true, handler: metered(filter) } : metered(filter);
}

/** The filter, its walk along a path within each item charged first. */
function meteredByItem(handler: Handler): Handler {
  return function (value, ...args) {
    const [path] = args;
    const steps = typeof path === "string" ? path.length : 0;
    this.context.memoryLimit.use(countOf(value) * (ITEM_UNITS + steps * PATH_CHAR_UNITS));
    return handler.call(this, value, ...args);
  };
}

/** The filter, the spaces that it may put before each item charged first. */
function meteredByIndent(handler: Handler): Handler {
  return function (value, ...args) {
    const [space] = args;
    if (space !== undefined) this.context.memoryLimit.use(charge(this.context, value) * MAX_INDENT_CHARS);
    return handler.call(this, value, ...args);
  };
}

/** The filter, what its format becomes charged first. */
function meteredByFormat(handler: Handler): Handler {
  return function (value, ...args) {
    // What it may hold has been charged by now, so that it can be printed.
    this.context.memoryLimit.use(textOf(args[0]).length * FORMAT_CHAR_UNITS);
    return handler.call(this, value, ...args);
  };
}

function countOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return Array.isArray(value) ? value.length : Object.keys(value).length;
}

/** The filter, its arguments charged first: a list that holds another many times over is far larger than it looks. */
function metered(handler: Handler): Handler {
  return function (value, ...args) {
    charge(this.context, value);
    for (const arg of args) charge(this.context, arg);
    return handler.call(this, value, ...args);
  };
}

/**
 * Takes the whole of a value off what is left of the context's work. Throws where it is more than that, or too deep.
 * @returns items in the value, times the levels they lie on
 */
function charge({ memoryLimit }: Context, root: unknown): number {
  let level: unknown[] = [root];
  let count = 0;
  let depth = 0;
  for (; level.length > 0; depth++) {
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
    count += next.length;
    level = next;
  }
  return count * depth;
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

/**
 * Whether the characters within a template's placeholders and tags are more than `limit`. The library's own tokenizer
 * says what is code: quotes and `raw` blocks would lead any other reading astray, and so past the limit.
 * @throws TokenizationError where a placeholder or tag is never closed
 */
export function hasTooMuchCode({ options }: Liquid, source: string, limit: number): boolean {
  if (source.length <= limit) return false;
  const tokenizer = new Tokenizer(source, options.operators);
  let code = 0;
  while (tokenizer.p < tokenizer.N) {
    const { kind, begin, end } = tokenizer.readTopLevelToken(options);
    if (kind !== TokenKind.HTML) code += end - begin;
    if (code > limit) return true;
  }
  return false;
}
