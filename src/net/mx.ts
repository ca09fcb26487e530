import { isPublicAddress } from "./address-guard.ts";
import type { DnsResult } from "./dns/result.ts";
import { type MxRecord, resolveAddresses, resolveMx } from "./dns/lookups.ts";
import type { Resolver } from "./dns/resolver.ts";

/** MX hosts tried for one domain, by preference; a longer list is cut. */
export const MAX_MX_HOSTS = 16;
/** Maximum number of addresses tried of one MX host. */
export const MAX_ADDRESSES_PER_HOST = 8;

export interface MxHost {
  /** Lower case, without final dot. The certificate must have this name. */
  name: string;
  preference: number;
  addresses: readonly string[];
}

/** Hosts that take mail for a domain. */
export type Route =
  | { kind: "hosts"; hosts: readonly MxHost[] }
  /** RFC 7505: the domain accepts no mail. */
  | { kind: "null_mx" }
  /** The domain does not exist, or has neither MX nor address. */
  | { kind: "no_such_domain" }
  /** Unknown now; try again later. */
  | { kind: "deferred"; reason: string };

export interface RouteDeps {
  resolver: Resolver;
  /** Returns a number in [0, 1). Shuffles hosts of equal preference. */
  random: () => number;
  /** Allows private addresses; for development. */
  allowPrivate: boolean;
}

/** Returns the hosts to try for a domain, in order (RFC 5321 §5.1). Never throws. */
export async function findRoute(deps: RouteDeps, domain: string): Promise<Route> {
  const found = await resolveMx(deps.resolver, domain);
  switch (found.status) {
    case "failure":
      return { kind: "deferred", reason: `MX lookup of ${domain}: ${found.reason}` };
    case "nxdomain":
      return { kind: "no_such_domain" };
    case "nodata":
      return implicitRoute(deps, domain);
    case "ok":
      return explicitRoute(deps, domain, found.records);
  }
}

/** RFC 5321 §5.1: if a domain has no MX records, it is its own mail host, with preference 0. */
async function implicitRoute(deps: RouteDeps, domain: string): Promise<Route> {
  const found = await resolveAddresses(deps.resolver, domain);
  if (found.status === "failure")
    return { kind: "deferred", reason: `address lookup of ${domain}: ${found.reason}` };
  if (found.status !== "ok") return { kind: "no_such_domain" };
  return routeOver(domain, [toHost(deps, { preference: 0, exchange: domain }, found)]);
}

async function explicitRoute(deps: RouteDeps, domain: string, records: readonly MxRecord[]): Promise<Route> {
  const named = records.filter((record) => record.exchange !== "");
  // RFC 7505 §3: a null MX must be the only record. If there are other hosts, ignore it.
  if (named.length === 0) return { kind: "null_mx" };
  const ordered = inOrder(named, deps.random).slice(0, MAX_MX_HOSTS);
  const hosts = await Promise.all(
    ordered.map(async (record) =>
      toHost(deps, record, await resolveAddresses(deps.resolver, record.exchange)),
    ),
  );
  return routeOver(domain, hosts);
}

/** RFC 5321 §5.1: sorts by preference. Hosts of equal preference are in random order, to share the load. */
export function inOrder(records: readonly MxRecord[], random: () => number): MxRecord[] {
  return records
    .map((record) => ({ record, lot: random() }))
    .sort((a, b) => a.record.preference - b.record.preference || a.lot - b.lot)
    .map(({ record }) => record);
}

interface Candidate extends MxHost {
  /** Why the host has no usable address; null if it has one. */
  missing: string | null;
}

function toHost(deps: RouteDeps, record: MxRecord, found: DnsResult<string>): Candidate {
  const { exchange: name, preference } = record;
  if (found.status !== "ok") {
    const missing = found.status === "failure" ? found.reason : "no address";
    return { name, preference, addresses: [], missing };
  }
  // If an MX points into our network, it could use us as a port scanner, or loop mail back to us.
  const allowed = deps.allowPrivate ? found.records : found.records.filter(isPublicAddress);
  const missing = allowed.length > 0 ? null : "no public address";
  return { name, preference, addresses: allowed.slice(0, MAX_ADDRESSES_PER_HOST), missing };
}

function routeOver(domain: string, candidates: readonly Candidate[]): Route {
  const hosts = candidates
    .filter((candidate) => candidate.missing === null)
    .map(({ name, preference, addresses }) => ({ name, preference, addresses }));
  if (hosts.length > 0) return { kind: "hosts", hosts };
  const why = candidates.map(({ name, missing }) => `${printable(name)}: ${missing}`).join(", ");
  return { kind: "deferred", reason: `no mail host of ${domain} can be reached (${why})` };
}

/** Replaces unprintable characters, which a DNS name may have (RFC 2181 §11), to keep records and logs to a line. */
function printable(name: string): string {
  return name.replace(/[^\x21-\x7e]/gu, "?");
}
