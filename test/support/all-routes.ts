import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Route } from "../../src/http/routing/route.ts";

const ROUTES = join(import.meta.dir, "../../src/http/routes");

/** Replaces all dependencies, because only the schemas of the routes are read. */
const ANY_DEPS: unknown = new Proxy(() => undefined, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => "any" : ANY_DEPS),
  apply: () => ANY_DEPS,
});

/** Returns every route that a file in or below `src/http/routes` makes. Their handlers cannot be called. */
export async function allRoutes(): Promise<Route[]> {
  const files = readdirSync(ROUTES, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".ts"),
  );
  const modules = await Promise.all(files.map((file) => import(join(ROUTES, file))));
  return modules
    .flatMap((exports) => Object.entries(exports))
    .filter(([name, value]) => /Routes?$/.test(name) && typeof value === "function")
    .flatMap(([, make]) => (make as (deps: unknown) => Route | Route[])(ANY_DEPS));
}
