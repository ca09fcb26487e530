import type { Key } from "../../core/crypto/key-ring.ts";
import { unseal } from "../../core/crypto/secretbox.ts";
import { RELAYS } from "../../mail/relays/providers.ts";
import { parseSmarthost } from "../../smtp/client/smarthost.ts";
import type { Pool } from "../../smtp/client/pool.ts";
import type { Clock } from "../../core/time/clock.ts";
import { LOST } from "../../store/installation/lost-secrets.ts";
import type { Store } from "../../store/engine/client.ts";
import { DEFAULT_ROUTE, planOf, type PlannedRoute } from "../../store/projects/routes.ts";
import type { Lane } from "../lanes/lane.ts";
import type { Lanes } from "../lanes/lanes.ts";
import { relayRoute, trouble } from "./deliver.ts";
import { BULK_POOL } from "./egress.ts";
import type { DeliveryRoute, FindDeliveryRoute, Ways } from "./outcome.ts";

/** The project, recipient domain, stream and routing From domain that some messages share. */
export interface Place {
  senderId: string;
  domain: string;
  bulk: boolean;
  /** Id of the From domain if that has its own routes, which come before the project's. */
  routedBy: string | null;
}

/** Finds the ways of some messages. @param find finds the default route of their domain */
export type FindWays = (place: Place, find: () => Promise<DeliveryRoute>) => Promise<Ways>;

export interface WaysDeps extends Store {
  pool: Pool;
  lanes: Lanes;
  /** Key that sealed the URLs of relays. */
  boxKey: Key;
  /** Proves ids that relays give back. */
  relayKey: Key;
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
    const plan = await planOf(deps.db, place.senderId, place.routedBy);
    const ways: DeliveryRoute[] = [];
    for (const route of plan) {
      const own = await waysOf(deps, route, place, find);
      const found = [...own, ...(await overflowOf(deps, route, own, place, find))];
      // A domain without hosts is no way to turn to. It decides only if it comes first.
      ways.push(...found.filter(({ kind }) => kind !== "none" || ways.length === 0));
    }
    const [first, ...others] = ways;
    return first === undefined ? defaultWays(await find(), place) : [first, ...others];
  };
}

/** Returns the ways of what is above the warm-up cap of a route: one for each lane of it that warms up. */
async function overflowOf(
  deps: WaysDeps,
  { overflow }: PlannedRoute,
  main: readonly DeliveryRoute[],
  ...where: [place: Place, find: () => Promise<DeliveryRoute>]
): Promise<DeliveryRoute[]> {
  const warming = main.flatMap(({ lane }) => (lane?.isWarming === true ? [lane] : []));
  if (overflow === null || warming.length === 0) return [];
  const ways = await waysOf(deps, overflow, ...where);
  return warming.flatMap((lane) => ways.map((way) => ({ ...way, overflowOf: lane })));
}

async function waysOf(
  deps: WaysDeps,
  route: Omit<PlannedRoute, "overflow">,
  place: Place,
  find: () => Promise<DeliveryRoute>,
): Promise<readonly DeliveryRoute[]> {
  if (route.id === DEFAULT_ROUTE) return defaultWays(await find(), place);
  if (route.kind === "relay") return [relayWay(deps, route)];
  const found = await (deps.byMx === null ? find() : deps.byMx(place.domain));
  const stamp = { routeId: route.id, custody: "delivered" } as const;
  const usual = place.bulk ? BULK_POOL : null;
  return (found.ways?.(route.pool ?? usual) ?? [found]).map((way) => {
    // Hosts that are no provider's get too little to notice a new address.
    if (way.lane !== undefined && way.lane.provider !== null) way.lane.warm(route.id, route.warmUp);
    return { ...way, stamp };
  });
}

function relayWay(
  deps: WaysDeps,
  { id, sealedRelayUrl, ratePerSecond, warmUp, eventsProvider }: Omit<PlannedRoute, "overflow">,
): DeliveryRoute {
  const { pool, clock, ehloName, addresses, lanes, boxKey, relayKey } = deps;
  const url = unseal(boxKey, sealedRelayUrl ?? "");
  // The sealed text changes with the login, and connections with another login must not be shared.
  const key = `route:${id}:${sealedRelayUrl}`;
  const lane = lanes.ofRelay(id, ratePerSecond ?? 0, warmUp);
  if (url === LOST) return lostRelay(clock, id, lane);
  const smarthost = parseSmarthost(url);
  const events = eventsProvider === null ? null : { provider: RELAYS[eventsProvider], key: relayKey };
  return relayRoute(pool, smarthost, ehloName, addresses, clock, { id, key, lane, events });
}

/** Returns the way through a relay whose login was lost with the master key. Its mail waits. */
function lostRelay(clock: Clock, routeId: string, lane: Lane): DeliveryRoute {
  const reason = `the login of the relay is lost: set relayUrl of the route ${routeId} again`;
  const deliver = async () => trouble("auth", reason, clock);
  const stamp = { routeId, custody: "sent" } as const;
  return { kind: "relay", destination: `mx:${lane.name}`, lane, stamp, knownOutcome: null, deliver };
}
