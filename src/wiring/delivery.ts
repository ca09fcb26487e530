import type { Config } from "../config.ts";
import type { Clock } from "../core/time/clock.ts";
import { log } from "../log.ts";
import { captureRoute, mxRoutes, relayRoute, unroutable } from "../flows/deliver/deliver.ts";
import { defaultWays, type FindWays, openWays, type Place } from "../flows/deliver/ways.ts";
import type { FindDeliveryRoute, DeliveryRoute, Ways } from "../flows/deliver/outcome.ts";
import type { SendingAddress } from "../flows/health/reverse.ts";
import { mxHost, simulatorDomain } from "../core/own-names.ts";
import type { CustodyStatus } from "../flows/deliver/outcome.ts";
import { createTaskLimit } from "../core/concurrency/admission.ts";
import { dnsServers } from "../net/dns/servers.ts";
import { addressesOfHost } from "../net/dns/lookups.ts";
import { createMtaSts, type MtaSts } from "../net/mta-sts.ts";
import { isPublicAddress, openAddressGuard } from "../net/address-guard.ts";
import type { GuardedDeps } from "../net/guarded-request.ts";
import { findRoute } from "../net/mx.ts";
import { createResolver, type Resolver } from "../net/dns/resolver.ts";
import { securityFor } from "../net/transport-security.ts";
import { parseSmarthost } from "../smtp/client/smarthost.ts";
import { Lanes, type LanesDeps } from "../flows/lanes/lanes.ts";
import { isRouteId } from "../store/projects/routes.ts";
import { findStsPolicy, saveStsPolicy } from "../store/domains/mta-sts.ts";
import type { Services } from "./services.ts";

/** Port of hosts that serve MTA-STS policies (RFC 8461 §3.3). */
const HTTPS_PORT = 443;
/** Timeout of the first, quick lookup, milliseconds. */
const QUICK_LOOK_MS = 1_000;
/** Slow lookups at a time, and those that may wait. Further ones fail, and their messages are deferred. */
const PATIENT_LOOKS = 128;
const MAX_WAITING_LOOKS = 10_000;

/** The way out that the settings name. */
export interface Outbound {
  lanes: Lanes;
  findDeliveryRoute: FindDeliveryRoute;
  /** Finds the ways that projects name, and those of released messages. */
  waysOf: FindWays;
  /** The status after a peer's 250. */
  custody: CustodyStatus;
}

/** Returns true if sends may be from any address, because all mail is captured. */
export function capturesAnyFrom({
  delivery,
  captureStrict,
}: Pick<Config, "delivery" | "captureStrict">): boolean {
  return delivery === "capture" && !captureStrict;
}

/** Returns our name in EHLO, banner and Received. */
export function mxName(config: Pick<Config, "serviceDomain">): string {
  return mxHost(config.serviceDomain);
}

/** Returns the addresses that other servers see our mail come from: those of EGRESS that are public, else PUBLIC_IPS. */
export function sendingAddresses(
  config: Pick<Config, "serviceDomain" | "publicIps" | "egress">,
): SendingAddress[] {
  const ehloName = mxName(config);
  const own = config.egress.filter(({ ip }) => isPublicAddress(ip));
  if (own.length === 0) return config.publicIps.map((ip) => ({ ip, ehloName }));
  return own.map(({ ip, name }) => ({ ip, ehloName: name ?? ehloName }));
}

/** Messages on one connection to a host that is no known provider's. A peer's memory must not grow for ever. */
const USUAL_MESSAGES = 500;

/** Returns the limits of lanes that the settings name. */
export function laneLimits(config: Config): Pick<LanesDeps, "usual" | "overrides" | "warmUps"> {
  const { destinationConnections: connections, destinationRate: rate, lanes: overrides, warmUp } = config;
  return { usual: { connections, messages: USUAL_MESSAGES, rate }, overrides, warmUps: warmUp };
}

/** Opens the way out that the settings name. */
export function openOutbound(services: Services): Outbound {
  const { config, db, clock, instance } = services;
  const lanes = new Lanes({ db, clock, instanceId: instance.id, ...laneLimits(config) });
  return { lanes, ...wayOut(config, { ...services, lanes }) };
}

/** Returns what finds the ways of messages, in order of preference. */
export function waysFinder({ findDeliveryRoute, waysOf }: Outbound): (place: Place) => Promise<Ways> {
  return (place) => waysOf(place, () => findDeliveryRoute(place.domain));
}

function wayOut(config: Config, deps: Services & { lanes: Lanes }): Omit<Outbound, "lanes"> {
  const { clock, resolver } = deps;
  const byMx = openMxRoutes(config, deps);
  const simulator = simulatorDomain(config.serviceDomain);
  const ways = openWays({
    ...deps,
    ehloName: mxName(config),
    byMx: config.delivery === "mx" ? null : byMx,
    addresses: (host) => addressesOfRelay(resolver, host, config.allowPrivateMx),
  });
  // Simulated recipients are handled here without a lookup.
  const waysOf: FindWays = async (place, find) =>
    place.domain === simulator ? defaultWays(await find(), place) : ways(place, find);
  switch (config.delivery) {
    case "capture":
      return captured(config, deps, ways);
    case "relay":
      return { findDeliveryRoute: always(smarthostRoute(config, deps)), custody: "sent", waysOf };
    case "mx": {
      const findDeliveryRoute: FindDeliveryRoute = (domain) =>
        domain === simulator ? Promise.resolve(captureRoute(clock)) : byMx(domain);
      return { findDeliveryRoute, custody: "delivered", waysOf };
    }
  }
}

/** Returns the way of captured mail. Released messages name the route that they leave by. */
function captured(
  config: Config,
  { clock, ...deps }: Services & { lanes: Lanes },
  ways: FindWays,
): Omit<Outbound, "lanes"> {
  const kept = captureRoute(clock, deps.testControls?.failures.meet);
  const byDefault: DeliveryRoute =
    config.smtpRelayUrl === null
      ? unroutable(clock, "SMTP_RELAY_URL is not set, and released mail leaves through it")
      : { ...smarthostRoute(config, { clock, ...deps }), stamp: { custody: "sent" } };
  return {
    findDeliveryRoute: always(kept),
    custody: "delivered",
    waysOf: async (place, find) =>
      place.routedBy !== null && isRouteId(place.routedBy)
        ? ways(place, async () => byDefault)
        : [await find()],
  };
}

/** Returns the route to the smarthost of the settings. It is the operator's own, so its addresses may be private. */
function smarthostRoute(config: Config, { clock, resolver, pool }: Services): DeliveryRoute {
  const smarthost = parseSmarthost(config.smtpRelayUrl ?? "");
  return relayRoute(pool, smarthost, mxName(config), (host) => addressesOfHost(resolver, host), clock);
}

/** Returns the addresses of a relay that a route names: an account must not reach into the network of the machine. */
async function addressesOfRelay(
  resolver: Resolver,
  host: string,
  allowPrivate: boolean,
): Promise<readonly string[] | null> {
  const found = await addressesOfHost(resolver, host);
  const allowed = found?.filter((ip) => allowPrivate || isPublicAddress(ip)) ?? [];
  return allowed.length === 0 ? null : allowed;
}

/** Opens the way straight to MX hosts. */
function openMxRoutes(
  config: Config,
  { clock, db, resolver, pool, lanes }: Services & { lanes: Lanes },
): FindDeliveryRoute {
  const ehloName = mxName(config);
  const { allowPrivateMx: allowPrivate, smtpOutPort: port } = config;
  // The system's own DNS servers often belong to a router or provider, so their DNSSEC validation is not trusted.
  const trustsDnssec = config.dnsServers.length > 0;
  const looking = patientResolver(config, clock, resolver);
  const mayReach = openAddressGuard({ own: () => [], denied: config.webhookDeny });
  const mtaSts = openMtaSts({ clock, db, resolver: looking, mayReach }, allowPrivate);
  return mxRoutes({
    pool,
    lanes,
    route: (domain) => findRoute({ resolver: looking, random: Math.random, allowPrivate }, domain),
    secure: (domain, hosts) => securityFor({ resolver: looking, mtaSts, port, trustsDnssec }, domain, hosts),
    port,
    ehloName,
    egresses: config.egress,
    ipv4Only: !config.smtpOutIpv6,
    clock,
  });
}

function always(route: DeliveryRoute): FindDeliveryRoute {
  return () => Promise.resolve(route);
}

/** Opens the MTA-STS policies, which the database caches. */
function openMtaSts(
  {
    clock,
    db,
    resolver,
    mayReach,
  }: Pick<Services, "clock" | "db" | "resolver"> & Pick<GuardedDeps, "mayReach">,
  allowPrivate: boolean,
): MtaSts {
  const store = {
    load: (domain: string) => findStsPolicy(db, domain),
    save: (policy: Parameters<typeof saveStsPolicy>[1]) => saveStsPolicy(db, policy),
  };
  return createMtaSts(
    { clock, resolver, mayReach, log: log("net"), store },
    { port: HTTPS_PORT, allowPrivate },
  );
}

/**
 * Makes a resolver that tries a quick lookup first, and a slow one if that fails. The slow ones are limited and use other
 * sockets. Otherwise a thousand domains whose name servers hang would delay all other messages for minutes.
 */
function patientResolver(config: Config, clock: Clock, patient: Resolver): Resolver {
  const quick = createResolver(
    { clock },
    {
      servers: dnsServers(config.dnsServers),
      tries: 1,
      tryTimeoutMs: QUICK_LOOK_MS,
      ownZone: config.serviceDomain,
    },
  );
  const runPatiently = createTaskLimit(PATIENT_LOOKS, MAX_WAITING_LOOKS);
  return {
    async resolve(...question) {
      const found = await quick.resolve(...question);
      if (found.status !== "failure") return found;
      return (await runPatiently(() => patient.resolve(...question))) ?? found;
    },
  };
}
