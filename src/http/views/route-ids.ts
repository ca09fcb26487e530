import { Type } from "@sinclair/typebox";
import { invalid } from "../../core/errors.ts";
import type { Db } from "../../store/engine/client.ts";
import { DEFAULT_ROUTE, getRoute } from "../../store/projects/routes.ts";

/** Maximum number of routes that a project or domain may name. */
const MAX_ROUTE_IDS = 3;

const MEANING =
  "Routes of its mail, in order; `default` is the one that the settings make. If no connection or login can be had on one, or its lane rests, the next is tried.";

/** Returns the schema of `routeIds` as it is shown. @param ifEmpty what an empty list means */
export function ShownRouteIds(ifEmpty: string) {
  return Type.Array(Type.String(), { description: `${MEANING} Empty: ${ifEmpty}.` });
}

/** Returns the schema of `routeIds` in a request. @param ifEmpty what an empty list means */
export function GivenRouteIds(ifEmpty: string) {
  return Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 64, examples: ["default"] }), {
      maxItems: MAX_ROUTE_IDS,
      description: `${MEANING} Empty: ${ifEmpty}.`,
      examples: [["default"]],
    }),
  );
}

/** Throws 422 if the account lacks one of the routes. */
export async function requireRoutes(db: Db, accountId: string, ids: readonly string[] = []): Promise<void> {
  for (const [at, id] of ids.entries()) await requireRoute(db, accountId, id, `routeIds[${at}]`);
}

/** Throws 422 for the parameter if the account lacks the route. */
export async function requireRoute(db: Db, accountId: string, id: string, param: string): Promise<void> {
  if (id !== DEFAULT_ROUTE && (await getRoute(db, accountId, id)) === null)
    throw invalid(param, "must be the id of a route of the account, or `default`.");
}
