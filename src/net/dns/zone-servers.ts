import type { Clock } from "../../core/time/clock.ts";
import { resolveAddresses, resolveNs } from "./lookups.ts";
import { canonicalName } from "./packet.ts";
import { createResolver, type Resolver } from "./resolver.ts";
import type { DnsResult } from "./result.ts";

/** A name server of a zone, and a resolver that asks it alone. */
export interface ZoneServer {
  name: string;
  resolver: Resolver;
}

export interface ZoneServerDeps {
  clock: Clock;
  resolver: Resolver;
  /** Returns whether we may ask the address, which the owner of the zone chose. */
  mayReach: (ip: string) => boolean;
  /** Port of name servers, 53. */
  port: number;
}

/** Maximum number of name servers queried. Zones have two to thirteen. */
export const MAX_ZONE_SERVERS = 4;
/** Minimum number of labels of a zone whose servers we query. */
const MIN_LABELS = 2;
/** Maximum labels that are removed from a name in search of its zone. */
const MAX_CLIMB = 8;
/** Timeout of each question, which is not repeated. */
const TIMEOUT_MS = 1500;

/**
 * Finds the name servers of the zone that holds a name: those of the nearest name above it that has NS records, but not
 * of a top-level domain. The resolver queries each directly, so that no answer comes from a cache.
 */
export async function findZoneServers(
  deps: ZoneServerDeps,
  name: string,
  minLabels = MIN_LABELS,
): Promise<ZoneServer[]> {
  const hosts = await serversOf(deps.resolver, name, minLabels);
  const found = await Promise.all(hosts.map((host) => openServer(deps, host)));
  return found.filter((server) => server !== null);
}

/**
 * Looks up the name servers to which the zone above delegates a name, at that zone's own servers. A resolver would ask the
 * servers that hold the name instead, and ours claims what it serves. If none of them answers, asks the resolver.
 */
export async function resolveDelegation(deps: ZoneServerDeps, name: string): Promise<DnsResult<string>> {
  const above = name.slice(name.indexOf(".") + 1);
  for (const { resolver } of await findZoneServers(deps, above, 1)) {
    const found = await resolveNs(resolver, name);
    if (found.status !== "failure") return found;
  }
  return resolveNs(deps.resolver, name, { fresh: true });
}

async function serversOf(resolver: Resolver, name: string, minLabels: number): Promise<string[]> {
  const labels = name.split(".");
  for (let climbed = 0; climbed < MAX_CLIMB && labels.length - climbed >= minLabels; climbed++) {
    const result = await resolver.resolve(labels.slice(climbed).join("."), "NS", { fresh: true });
    if (result.status === "failure") return [];
    if (result.status !== "ok") continue;
    const hosts = result.records.flatMap((record) =>
      record.type === "NS" ? [canonicalName(record.data)] : [],
    );
    return hosts.sort().slice(0, MAX_ZONE_SERVERS);
  }
  return [];
}

async function openServer(
  { clock, resolver, mayReach, port }: ZoneServerDeps,
  name: string,
): Promise<ZoneServer | null> {
  const addresses = await resolveAddresses(resolver, name);
  const ip = addresses.status === "ok" ? addresses.records.find(mayReach) : undefined;
  if (ip === undefined) return null;
  const only = { servers: [{ ip, port }], tries: 1, tryTimeoutMs: TIMEOUT_MS };
  return { name, resolver: createResolver({ clock }, only) };
}
