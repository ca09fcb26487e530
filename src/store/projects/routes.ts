import { idCeiling } from "../../core/ids.ts";
import type { RelayProviderName } from "../../core/messages/relay-providers.ts";
import { changesRow, type ConfigurationQuery, type Db, type Statement } from "../engine/client.ts";
import { nullableJson, plain, table } from "../engine/columns.ts";

/** The id by which a project or domain names the route that the settings make. */
export const DEFAULT_ROUTE = "default";

/** Maximum number of relays whose rates are read. */
const MAX_RELAYS = 10_000;

/** The warm-up of a route: it sends more each day, up to a target. */
export interface RouteWarmUp {
  /** First day, in days since 1970. */
  from: number;
  /** Messages a day to which it grows. After a good day with that many there is no limit. */
  target: number;
  /** Route of what is above the day's cap. Null: it waits. */
  overflowRouteId: string | null;
}

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
  /** Null: it is warm. */
  warmUp: RouteWarmUp | null;
  /** The provider whose events are taken. Null: none. */
  eventsProvider: RelayProviderName | null;
  /** The key, topic or secret that proves its events, sealed. */
  sealedProof: string | null;
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
  warmUp: nullableJson("warm_up"),
  eventsProvider: plain("events_provider"),
  sealedProof: plain("sealed_proof"),
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

/** Returns the route of an open request, of any account. */
export function findRoute(db: Db, id: string): Promise<OutRoute | null> {
  return ROUTES.first(db, "WHERE id = ?", [id]);
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
export type RouteChanges = Partial<Omit<OutRoute, "id" | "accountId" | "kind" | "createdAt">>;

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

/** Deletes a route that nothing names. Returns false if there is none, or a project, domain, unsent broadcast or overflow names it. */
export function deleteRoute(db: Db, accountId: string, id: string): Promise<boolean> {
  const naming = (owners: string) => `NOT EXISTS (SELECT 1 FROM ${owners} o, json_each(o.route_ids) named
      WHERE o.account_id = routes.account_id AND named.value = routes.id)`;
  const sql = `DELETE FROM routes WHERE account_id = ? AND id = ? AND ${naming("senders")} AND ${naming("domains")}
    AND NOT EXISTS (SELECT 1 FROM senders s JOIN broadcasts b ON b.sender_id = s.id, json_each(b.route_ids) named
      WHERE s.account_id = routes.account_id AND named.value = routes.id AND b.status <> 'sent' AND b.status <> 'canceled')
    AND NOT EXISTS (SELECT 1 FROM routes w WHERE w.account_id = routes.account_id
      AND w.warm_up ->> 'overflowRouteId' = routes.id)`;
  return changesRow(db, sql, [accountId, id]);
}

/** A route as it is used. */
export interface PlannedRoute
  extends Omit<OutRoute, "accountId" | "name" | "relayHost" | "sealedProof" | "createdAt"> {
  /** The route of what is above the cap of the warm-up. Null: there is none. */
  overflow: Omit<PlannedRoute, "overflow"> | null;
}

/** Returns SQL of the fields of a planned route. @param id SQL of its id, because `default` has no row */
function planned(route: string, id: string): string {
  return `'id', ${id}, 'kind', COALESCE(${route}.kind, 'mx'), 'sealedRelayUrl', ${route}.sealed_relay_url,
    'pool', ${route}.pool, 'ratePerSecond', ${route}.rate_per_second, 'warmUp', json(${route}.warm_up),
    'eventsProvider', ${route}.events_provider`;
}

const OVERFLOW = "r.warm_up ->> 'overflowRouteId'";

/** Returns whether an id is that of a route, which released messages have in place of a domain's. */
export function isRouteId(id: string): boolean {
  return id === DEFAULT_ROUTE || id.startsWith("rte_");
}

const IS_ROUTE_ID = `(?2 = '${DEFAULT_ROUTE}' OR substr(?2, 1, 4) = 'rte_')`;

/** Parameters: project; domain, route, or JSON of the ids of routes. */
const PLAN: ConfigurationQuery<{ routes: string }, readonly PlannedRoute[]> = {
  sql: `SELECT (SELECT json_group_array(json(route)) FROM (
        SELECT json_object(${planned("r", "named.value")}, 'overflow', json(iif(
            o.id IS NULL AND ${OVERFLOW} IS NOT '${DEFAULT_ROUTE}', NULL, json_object(${planned("o", OVERFLOW)})))) AS route
          FROM json_each(CASE WHEN ${IS_ROUTE_ID} THEN json_array(?2)
            WHEN substr(?2, 1, 1) = '[' THEN ?2
            WHEN COALESCE(d.route_ids, '[]') = '[]' THEN s.route_ids ELSE d.route_ids END) named
            LEFT JOIN routes r ON r.id = named.value AND r.account_id = s.account_id
            LEFT JOIN routes o ON o.id = ${OVERFLOW} AND o.account_id = s.account_id
          WHERE r.id IS NOT NULL OR named.value = '${DEFAULT_ROUTE}' ORDER BY named.key)) AS routes
    FROM senders s LEFT JOIN domains d ON d.id = ?2 AND d.sender_id = s.id WHERE s.id = ?1`,
  read: ({ routes }) => JSON.parse(routes),
};

/**
 * Returns the routes that a domain of the project names, else those that the project does, in order; none if its mail takes
 * the default one. @param routedBy null: the project decides; if it is the id of a broadcast, its routes; of a route, that one alone
 */
export async function planOf(
  db: Db,
  senderId: string,
  routedBy: string | null,
): Promise<readonly PlannedRoute[]> {
  const named = routedBy?.startsWith("bro_") ? await routesOfBroadcast(db, senderId, routedBy) : routedBy;
  return (await db.readConfig(PLAN, [senderId, named ?? ""])) ?? [];
}

/** Returns JSON of the ids. A broadcast changes with each step, so it is no configuration that could be kept. */
async function routesOfBroadcast(db: Db, senderId: string, id: string): Promise<string | null> {
  const sql = "SELECT route_ids AS ids FROM broadcasts WHERE id = ? AND sender_id = ?";
  return (await db.first<{ ids: string }>(sql, [id, senderId]))?.ids ?? null;
}
