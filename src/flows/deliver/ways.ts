import { unseal } from "../../core/crypto/secretbox.ts";
import { parseSmarthost } from "../../smtp/client/smarthost.ts";
import type { Pool } from "../../smtp/client/pool.ts";
import type { Store } from "../../store/engine/client.ts";
import { DEFAULT_ROUTE, planOf, type PlannedRoute } from "../../store/projects/routes.ts";
import type { Lanes } from "../lanes/lanes.ts";
import { relayRoute } from "./deliver.ts";
import { BULK_POOL } from "./egress.ts";
import type { DeliveryRoute, FindDeliveryRoute, Ways } from "./outcome.ts";

/** The project, recipient domain and stream that some messages share. */
export interface Place {
  senderId: string;
  domain: string;
  bulk: boolean;
}

/** Finds the ways of some messages. @param find finds the default route of their domain */
export type FindWays = (place: Place, find: () => Promise<DeliveryRoute>) => Promise<Ways>;

export interface WaysDeps extends Store {
  pool: Pool;
  lanes: Lanes;
  /** Key that sealed the URLs of relays. */
  boxKey: Uint8Array;
  ehloName: string;
  /** Returns the addresses of a relay that may be reached; null if they are unknown now. */
  addresses: (host: string) => Promise<readonly string[] | null>;
  /** Finds the MX hosts of a domain. Null if they are what the default route finds. */
  byMx: FindDeliveryRoute | null;
}

/** Returns the ways of the default route. */
export function defaultWays(route: DeliveryRoute, { bulk }: Pick<Place, "bulk">): Ways {
  const [first = route, ...others] = route.ways?.(bulk ? BULK_POOL : null) ?? [];
  return [first, ...others];
}

/** Finds the ways that the routes of a project give, in the order of its `routeIds`. */
export function openWays(deps: WaysDeps): FindWays {
  return async (place, find) => {
    const plan = await planOf(deps.db, place.senderId);
    const ways: DeliveryRoute[] = [];
    for (const route of plan) {
      const found = await waysOf(deps, route, place, find);
      // A domain without hosts is no way to turn to. It decides only if it comes first.
      ways.push(...found.filter(({ kind }) => kind !== "none" || ways.length === 0));
    }
    const [first, ...others] = ways;
    return first === undefined ? defaultWays(await find(), place) : [first, ...others];
  };
}

async function waysOf(
  deps: WaysDeps,
  route: PlannedRoute,
  place: Place,
  find: () => Promise<DeliveryRoute>,
): Promise<readonly DeliveryRoute[]> {
  if (route.id === DEFAULT_ROUTE) return defaultWays(await find(), place);
  if (route.kind === "relay") return [relayWay(deps, route)];
  const found = await (deps.byMx === null ? find() : deps.byMx(place.domain));
  const stamp = { routeId: route.id, custody: "delivered" } as const;
  const usual = place.bulk ? BULK_POOL : null;
  return (found.ways?.(route.pool ?? usual) ?? [found]).map((way) => ({ ...way, stamp }));
}

function relayWay(deps: WaysDeps, { id, sealedRelayUrl, ratePerSecond }: PlannedRoute): DeliveryRoute {
  const { pool, clock, ehloName, addresses, lanes, boxKey } = deps;
  const smarthost = parseSmarthost(unseal(boxKey, sealedRelayUrl ?? ""));
  // The sealed text changes with the login, and connections with another login must not be shared.
  const key = `route:${id}:${sealedRelayUrl}`;
  const lane = lanes.ofRelay(id, ratePerSecond ?? 0);
  return relayRoute(pool, smarthost, ehloName, addresses, clock, { id, key, lane });
}
