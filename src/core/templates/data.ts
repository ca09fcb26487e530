import { Context, Drop, type Liquid } from "liquidjs";

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
export function dataContext(engine: Liquid, data: Readonly<Record<string, unknown>>): DataContext {
  const root: Record<string, unknown> = Object.assign(Object.create(null), data);
  return new DataContext(root, engine.options, { sync: true }, { liquid: engine });
}

/**
 * Makes every object in the data printable. If an object has its own `toString` that is not a function, printing or
 * comparing it would end the rendering. Reading keys and making JSON do not see the change.
 */
export function makePrintable(data: unknown): void {
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
