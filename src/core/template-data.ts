import { Context, Drop, type Liquid } from "liquidjs";

/** What a template may ask of the objects that loops make (`forloop`, `tablerowloop`). */
const LOOP_PROPERTIES: ReadonlySet<unknown> = new Set([
  ...["name", "length", "index", "index0", "rindex", "rindex0", "first", "last"],
  ...["row", "col", "col0", "col_first", "col_last"],
]);

/**
 * The library's context, less what is nobody's data: it reads its own objects, those of loops and literals such as
 * `empty`, with all that their prototypes have, calls functions among it, and takes a `size` that the data lacks for 0.
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
 * The data as one rendering reads it. It is a copy, for `increment` counts in it, and has no prototype: an inherited
 * `__proto__` cannot be counted in.
 */
export function dataContext(engine: Liquid, data: Readonly<Record<string, unknown>>): DataContext {
  const root: Record<string, unknown> = Object.assign(Object.create(null), data);
  return new DataContext(root, engine.options, { sync: true }, { liquid: engine });
}

/**
 * Sees to it that every object in the data becomes text as others do. One that has a `toString` of its own, which is no
 * function, could not be printed or compared, and would end the rendering. Nothing that reads keys or makes JSON sees it.
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

/** What every object without a `toString` of its own is as text. */
function asText(): string {
  return Object.prototype.toString.call({});
}
