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
import { MAX_BODY_PART_BYTES } from "../messages/send-rules.ts";

/** Limits for rendering one part of a template (subject, html or text). */
export interface RenderLimits {
  /** Characters inside placeholders and tags. Parsing takes time by these, not by the text around them. */
  codeChars: number;
  /** Milliseconds of rendering, because loops can be nested. */
  renderMs: number;
  /** Characters and list items that filters, ranges, captures and output may handle together. */
  workUnits: number;
}

export const RENDER_LIMITS: RenderLimits = {
  codeChars: 100_000,
  renderMs: 1000,
  workUnits: 16 * 1024 * 1024,
};

/**
 * Maximum nesting of lists and objects that a filter or the output takes. Printing recurses once per level.
 */
export const MAX_VALUE_DEPTH = 100;

/** Tags that read other files, or only make sense with one. A template has no other files. */
const FILE_TAGS = ["include", "render", "layout", "block"];

/**
 * Filters that take an expression as text. The analysis cannot see the variables in it, and its work between two
 * checks of the clock has no bound.
 */
const EXPRESSION_FILTERS = /_exp$/;

/**
 * Filters whose output is already escaped. If one of them is last in a placeholder, its output is not escaped again.
 */
const ESCAPING_FILTERS: ReadonlySet<string> = new Set(["escape", "xml_escape", "escape_once"]);

/** Filters that take the same time for a value of any size. */
const LIGHT_FILTERS: ReadonlySet<string> = new Set(["size", "first", "last", "default"]);

/**
 * Filters that compare the items of a list, or look up a path in each. The library charges an item like a character,
 * and a path once. Sorting two million items takes seconds, and a long path in thousands of items takes hours.
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
/** Cost of an item in such a filter, and of a character of its path, in characters of another filter. */
const ITEM_UNITS = 64;
const PATH_CHAR_UNITS = 16;

/** Filters that can print each item on its own line, indented by its depth. */
const INDENTING_FILTERS: ReadonlySet<string> = new Set(["json", "jsonify", "inspect"]);
/** Maximum spaces per level, whatever the template asks for (`JSON.stringify`). */
const MAX_INDENT_CHARS = 10;

/**
 * Cost of a character of a date format, in characters of another filter. Two characters become two dozen, and each
 * pair needs a search. The library does not charge for that.
 */
const FORMAT_CHAR_UNITS = 16;

/** How values of placeholders are escaped in the output. */
export type Escaping = "html" | "none";

/**
 * Returns a Liquid engine without files, with own properties only, and without unknown filters. All work counts
 * against the limits, so that neither a template nor its data can block the process.
 */
export function templateEngine(escaping: Escaping, limits: RenderLimits): Liquid {
  const engine = new Liquid({
    // Looks up other templates in an empty map, so that no tag or filter reads the file system.
    templates: {},
    relativeReference: false,
    dynamicPartials: false,
    // Prevents reading the prototypes of the data (constructor, __proto__).
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

/** Charges for looking up a path in each item before the filter runs. */
function meteredByItem(handler: Handler): Handler {
  return function (value, ...args) {
    const [path] = args;
    const steps = typeof path === "string" ? path.length : 0;
    this.context.memoryLimit.use(countOf(value) * (ITEM_UNITS + steps * PATH_CHAR_UNITS));
    return handler.call(this, value, ...args);
  };
}

/** Charges for the indentation before the filter runs. */
function meteredByIndent(handler: Handler): Handler {
  return function (value, ...args) {
    const [space] = args;
    if (space !== undefined) this.context.memoryLimit.use(charge(this.context, value) * MAX_INDENT_CHARS);
    return handler.call(this, value, ...args);
  };
}

/** Charges for what a date format expands to before the filter runs. */
function meteredByFormat(handler: Handler): Handler {
  return function (value, ...args) {
    // The value has been charged above, so it can be printed.
    this.context.memoryLimit.use(textOf(args[0]).length * FORMAT_CHAR_UNITS);
    return handler.call(this, value, ...args);
  };
}

function countOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return Array.isArray(value) ? value.length : Object.keys(value).length;
}

/**
 * Charges for the arguments before the filter runs. A list that holds another list many times is far larger than it
 * looks.
 */
function metered(handler: Handler): Handler {
  return function (value, ...args) {
    charge(this.context, value);
    for (const arg of args) charge(this.context, arg);
    return handler.call(this, value, ...args);
  };
}

/**
 * Charges the context for a whole value. Throws if it costs more than what is left, or is nested too deep.
 * @returns the items in the value, each times its level
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

/**
 * Sends all output through counting buffers, `capture` included, because the library lets its own grow without limit.
 */
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

/** Returns a value as Liquid prints it. */
function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return Array.isArray(value) ? value.map(textOf).join("") : String(value);
}

/**
 * Returns whether a template has more than `limit` characters inside placeholders and tags. It uses the library's own
 * tokenizer, because another reading could be misled by quotes and `raw` blocks.
 * @throws TokenizationError if a placeholder or tag is never closed
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
