import { idCeiling } from "../../core/ids.ts";
import { changesRow, type ConfigurationQuery, type Db, type Statement } from "../engine/client.ts";
import { plain, table } from "../engine/columns.ts";

/** The id by which a project names the route that the settings make. */
export const DEFAULT_ROUTE = "default";

/** Maximum number of relays whose rates are read. */
const MAX_RELAYS = 10_000;

/** A way out of an account. */
export interface OutRoute {
  id: string;
  accountId: string;
  name: string;
  /** Straight to the recipients' MX hosts, or through a relay. */
  kind: "mx" | "relay";
  /** The relay's URL with its login, sealed. */
  sealedRelayUrl: string | null;
  /** Host and port of the relay. */
  relayHost: string | null;
  /** Own addresses that mail leaves from. */
  pool: string | null;
  /** Maximum number of messages a second to the relay. Null: no limit. */
  ratePerSecond: number | null;
  createdAt: number;
}

const ROUTES = table<OutRoute>("routes", {
  id: plain("id"),
  accountId: plain("account_id"),
  name: plain("name"),
  kind: plain("kind"),
  sealedRelayUrl: plain("sealed_relay_url"),
  relayHost: plain("relay_host"),
  pool: plain("pool"),
  ratePerSecond: plain("rate_per_second"),
  createdAt: plain("created_at"),
});

/** Returns the statement that stores a new route. If the name is taken, it breaks UNIQUE on `routes.account_id`. */
export function insertRoute(route: OutRoute): Statement {
  return ROUTES.insert(route);
}

/** Returns the account's route; null if it has none with that id. */
export function getRoute(db: Db, accountId: string, id: string): Promise<OutRoute | null> {
  return ROUTES.first(db, "WHERE account_id = ? AND id = ?", [accountId, id]);
}

/** Returns at most `take` of the account's routes, newest first, with ids below `after`. */
export function listRoutes(
  db: Db,
  accountId: string,
  after: string | null,
  take: number,
): Promise<OutRoute[]> {
  const page = "WHERE account_id = ? AND id < ? ORDER BY id DESC LIMIT ?";
  return ROUTES.all(db, page, [accountId, after ?? idCeiling("rte"), take]);
}

/** Returns the rates of all relays, messages a second. Null: no limit. */
export function relayRates(db: Db): Promise<Pick<OutRoute, "id" | "ratePerSecond">[]> {
  return db.all("SELECT id, rate_per_second AS ratePerSecond FROM routes WHERE kind = 'relay' LIMIT ?", [
    MAX_RELAYS,
  ]);
}

/** The fields of a route that may be changed. */
export type RouteChanges = Partial<
  Pick<OutRoute, "name" | "sealedRelayUrl" | "relayHost" | "pool" | "ratePerSecond">
>;

/** Changes a route. Returns it afterwards; null if there is none. */
export async function updateRoute(
  db: Db,
  accountId: string,
  id: string,
  changes: RouteChanges,
): Promise<OutRoute | null> {
  const { set, values } = ROUTES.assignments(changes);
  if (set.length === 0) return getRoute(db, accountId, id);
  const sql = `UPDATE routes SET ${set.join(", ")} WHERE account_id = ? AND id = ? RETURNING ${ROUTES.columns}`;
  const [written] = await db.write([{ sql, args: [...values, accountId, id] }]);
  return ROUTES.returned(written);
}

/** Deletes a route that no project names. Returns false if there is none, or a project names it. */
export function deleteRoute(db: Db, accountId: string, id: string): Promise<boolean> {
  const sql = `DELETE FROM routes WHERE account_id = ? AND id = ? AND NOT EXISTS (
    SELECT 1 FROM senders s, json_each(s.route_ids) named
      WHERE s.account_id = routes.account_id AND named.value = routes.id)`;
  return changesRow(db, sql, [accountId, id]);
}

/** A route as it is used. */
export type PlannedRoute = Pick<OutRoute, "id" | "kind" | "sealedRelayUrl" | "pool" | "ratePerSecond">;

const PLAN: ConfigurationQuery<{ routes: string }, readonly PlannedRoute[]> = {
  sql: `SELECT (SELECT json_group_array(json(route)) FROM (
        SELECT json_object('id', named.value, 'kind', COALESCE(r.kind, 'mx'), 'sealedRelayUrl', r.sealed_relay_url,
            'pool', r.pool, 'ratePerSecond', r.rate_per_second) AS route
          FROM json_each(s.route_ids) named LEFT JOIN routes r ON r.id = named.value AND r.account_id = s.account_id
          WHERE r.id IS NOT NULL OR named.value = '${DEFAULT_ROUTE}' ORDER BY named.key)) AS routes
    FROM senders s WHERE s.id = ?1`,
  read: ({ routes }) => JSON.parse(routes),
};

/** Returns the routes that a project names, in order; none if it takes the default one. */
export async function planOf(db: Db, senderId: string): Promise<readonly PlannedRoute[]> {
  return (await db.readConfig(PLAN, [senderId])) ?? [];
}
