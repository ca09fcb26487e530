import type { Key } from "../../core/crypto/key-ring.ts";
import { isIPv4 } from "node:net";
import type { Egress } from "../../core/networks.ts";
import type { Clock } from "../../core/time/clock.ts";
import type { Lane } from "../lanes/lane.ts";
import type { Lanes } from "../lanes/lanes.ts";
import { byLane } from "../lanes/providers.ts";
import { type RelayProvider, withRelayFields } from "../../mail/relays/providers.ts";
import type { MxHost, Route } from "../../net/mx.ts";
import { type SecuredRoute, type SecuredHost, securityKey } from "../../net/transport-security.ts";
import {
  type DeliveryReport as ClientReport,
  type Destination,
  type PeerResult,
  SHUTTING_DOWN,
} from "../../smtp/client/delivery.ts";
import type { Pool } from "../../smtp/client/pool.ts";
import type { Smarthost } from "../../smtp/client/smarthost.ts";
import { egressesOf, ownEnd, reachedFrom } from "./egress.ts";
import { PoolClosedError } from "../mime/rendering-tasks.ts";
import {
  type Deliver,
  type DeliveryReport,
  type FindDeliveryRoute,
  isOpening,
  noFacts,
  type DeliveryRoute,
  type Shipment,
  Withdrawn,
  replyLine,
} from "./outcome.ts";

/**
 * Returns the route of captured mail: each recipient is delivered to, and no connection is made.
 * @param fails returns the report of an attempt that a test wants to fail; null for others
 */
export function captureRoute(
  clock: Clock,
  fails: (shipment: Shipment) => DeliveryReport | null = () => null,
): DeliveryRoute {
  const deliver: Deliver = async (shipment) =>
    fails(shipment) ?? {
      kind: "accepted",
      reply: { stage: "final", code: 250, enhanced: "2.0.0", text: "captured, not sent" },
      ...noFacts(clock.now()),
      mx: "capture",
    };
  return { kind: "kept", destination: "capture", knownOutcome: null, deliver };
}

/** Returns the route to the smarthost. Each message looks up its address. */
export function relayRoute(
  pool: Pool,
  smarthost: Smarthost,
  ehloName: string,
  addresses: (host: string) => Promise<readonly string[] | null>,
  clock: Clock,
  named: NamedRelay | null = null,
): DeliveryRoute {
  const { host, port, tls, implicitTls, auth } = smarthost;
  const key = named?.key ?? `relay:${host}:${port}`;
  const deliver: Deliver = async (shipment, signal) => {
    const found = await addresses(host);
    if (found === null) return trouble("dns", `no address of ${host} is known now`, clock);
    const hosts = [{ name: host, addresses: found }];
    const limits = named === null ? {} : { limits: named.lane.shared };
    const { events = null } = named ?? {};
    const sent =
      events === null
        ? shipment
        : { ...shipment, raw: withRelayFields(events.provider, shipment.raw, events.key) };
    const destination = { key, hosts, port, tls, implicitTls, ehloName, ...limits };
    const withLogin = auth === undefined ? destination : { ...destination, auth };
    const report = asOurTrouble(await shipTo(pool, withLogin, sent, signal));
    if (events === null || report.kind !== "accepted") return report;
    const relayId = events.provider.relayId(shipment.raw, report.reply.text);
    return relayId === null ? report : { ...report, relayId };
  };
  const route: DeliveryRoute = { kind: "relay", destination: key, knownOutcome: null, deliver };
  if (named === null) return route;
  const { lane, id: routeId } = named;
  return { ...route, destination: `mx:${lane.name}`, lane, stamp: { routeId, custody: "sent" } };
}

/** A relay of a route. */
export interface NamedRelay {
  id: string;
  /** Key of connections with its login. */
  key: string;
  lane: Lane;
  /** The provider whose events come for its mail, and the key of the ids that it gives back. Null: none come. */
  events: { provider: RelayProvider; key: Key } | null;
}

/** RFC 4954 §6: authentication required. RFC 3207 §4: STARTTLS must be issued first. */
const AUTH_OR_TLS_REQUIRED = 530;

/**
 * Turns a permanent refusal of all mail by the smarthost into trouble. As with a wrong password, the message waits
 * until the operator has fixed that.
 */
function asOurTrouble(report: DeliveryReport): DeliveryReport {
  if (report.kind !== "refused" || report.reply.code < 500) return report;
  const { kind: _, reply, ...facts } = report;
  const stage = reply.code === AUTH_OR_TLS_REQUIRED ? "auth" : reply.stage;
  if (!isOpening(stage)) return report;
  return { ...facts, kind: "trouble", stage, reason: `the smarthost refuses us: ${replyLine(reply)}` };
}

export interface MxRouteDeps {
  pool: Pool;
  lanes: Lanes;
  route: (domain: string) => Promise<Route>;
  /** Returns the TLS policy of a domain for its hosts. */
  secure: (domain: string, hosts: readonly MxHost[]) => Promise<SecuredRoute>;
  /** SMTP port of MX hosts. */
  port: number;
  ehloName: string;
  /** Our own addresses. Empty if the system chooses. */
  egresses?: readonly Egress[];
  /** True if hosts are reached over IPv4 alone. */
  ipv4Only?: boolean;
  clock: Clock;
}

/** Finds the MX hosts of a domain. */
export function mxRoutes(deps: MxRouteDeps): FindDeliveryRoute {
  return async (domain) => {
    const found = await deps.route(domain);
    switch (found.kind) {
      case "deferred":
        return noPeerRoute(() => trouble("dns", found.reason, deps.clock));
      case "no_such_domain":
        return noPeerRoute(() =>
          noRoute(`the domain ${domain} takes no mail: it does not exist or has no address`, deps.clock),
        );
      case "null_mx":
        return noPeerRoute(() => noRoute(`the domain ${domain} takes no mail (null MX)`, deps.clock));
      case "hosts": {
        const secured = await deps.secure(domain, found.hosts);
        return secured.kind === "hosts"
          ? hostsRoute(deps, domain, secured.hosts)
          : noPeerRoute(() => trouble("starttls", secured.reason, deps.clock));
      }
    }
  };
}

/**
 * Returns the route to MX hosts, with the ways that lead over the lanes of its hosts from our own addresses. Hosts of
 * different lanes are different ways: the next is taken if the one before cannot be reached or rests.
 */
function hostsRoute(deps: MxRouteDeps, domain: string, hosts: readonly SecuredHost[]): DeliveryRoute {
  const { egresses = [], ipv4Only = false, clock } = deps;
  const reached = ipv4Only ? reachedFrom(hosts, isIPv4) : hosts;
  const lanes = byLane(reached);
  const ways = (pool: string | null): DeliveryRoute[] =>
    lanes.flatMap((own) =>
      egresses.length === 0
        ? [hostsWay(deps, own, null)]
        : egressesOf(egresses, pool, domain).flatMap((egress) => {
            const near = reachedFrom(own, (ip) => isIPv4(ip) === isIPv4(egress.ip));
            return near.length === 0 ? [] : [hostsWay(deps, near, egress)];
          }),
    );
  const [usual] = ways(null);
  if (reached.length === 0 || usual === undefined)
    return noPeerRoute(() =>
      trouble("connect", `no mail host of ${domain} has an address that we can reach`, clock),
    );
  if (egresses.length === 0 && lanes.length === 1) return usual;
  return { ...usual, ways };
}

/** Returns the way to the MX hosts of one lane from an address of ours, with their TLS policy. */
function hostsWay(
  { pool, lanes, port, ehloName }: MxRouteDeps,
  hosts: readonly SecuredHost[],
  egress: Egress | null,
): DeliveryRoute {
  const names = hosts.map(({ name }) => name);
  const security = hosts.map((host) => `${host.name} ${securityKey(host)}`).sort();
  const isPlain = hosts.every((host) => host.security === undefined);
  const lane = lanes.ofHosts(names, isPlain ? "" : JSON.stringify(security), egress?.ip);
  const key = destinationKey(hosts, port);
  const destination: Destination = {
    key,
    hosts,
    port,
    ehloName,
    limits: lane.shared,
    ...(egress === null ? {} : ownEnd(egress, key, ehloName)),
    tls: lane.provider?.tlsRequired === true ? "encrypted" : "opportunistic",
  };
  const sent = egress === null ? {} : { egress: egress.ip };
  const deliver: Deliver = async (shipment, signal) => ({
    ...(await shipTo(pool, destination, shipment, signal)),
    ...sent,
  });
  return { kind: "hosts", destination: `mx:${lane.name}`, lane, knownOutcome: null, deliver };
}

/**
 * Returns the key of a set of MX hosts. Domains with the same hosts and TLS policy share connections. A connection with
 * an unchecked certificate must carry no mail of a domain that enforces one. As JSON, since a DNS name may hold any
 * separator (RFC 2181 §11).
 */
function destinationKey(hosts: readonly SecuredHost[], port: number): string {
  const set = hosts.map((host) => JSON.stringify([host.name, securityKey(host)])).sort();
  return `mx:${set.join(",")}:${port}`;
}

/** Returns the route of messages that have none, because of our bug unless a reason is given. */
export function unroutable(clock: Clock, reason = "internal error"): DeliveryRoute {
  return noPeerRoute(() => trouble("internal", reason, clock));
}

/**
 * Returns the route of a domain whose messages reach no peer. All such domains share a destination, so the deferrals at
 * once are limited.
 */
function noPeerRoute(report: () => DeliveryReport): DeliveryRoute {
  return {
    kind: "none",
    destination: "none",

    knownOutcome: report,
    deliver: async () => report(),
  };
}

async function shipTo(
  pool: Pool,
  destination: Destination,
  shipment: Shipment,
  signal: AbortSignal | undefined,
): Promise<DeliveryReport> {
  const { domain: _, ...mail } = shipment;
  const { result, ...facts } = await pool.deliver(destination, mail, signal);
  if (result.kind === "withdrawn") throw new Withdrawn("another process has it");
  if (isOurStop(result)) throw new PoolClosedError(SHUTTING_DOWN);
  return toReport(facts, result);
}

/**
 * Returns whether our stop came before the peer had the message. After that the peer may have accepted it, so the next
 * attempt must wait.
 */
function isOurStop(result: PeerResult): boolean {
  return result.kind === "trouble" && result.stage !== "final" && result.reason === SHUTTING_DOWN;
}

function toReport(
  { mx, ip, tls, transcript, startedAt, durationMs }: Omit<ClientReport, "result">,
  result: PeerResult,
): DeliveryReport {
  const facts = { mx, ip, tls, transcript, startedAt, durationMs };
  switch (result.kind) {
    case "trouble":
      return { ...facts, kind: "trouble", stage: result.stage, reason: result.reason };
    case "unsendable": {
      const { code, enhanced, text } = result;
      return { ...facts, kind: "undeliverable", verdict: "failed", reason: text, code, enhanced };
    }
    case "reply": {
      const { stage, code, enhanced, text } = result;
      const custody = stage === "final" && code >= 200 && code <= 299;
      return { ...facts, kind: custody ? "accepted" : "refused", reply: { stage, code, enhanced, text } };
    }
  }
}

/** Returns the report of an attempt that settled nothing. */
export function trouble(stage: string, reason: string, clock: Clock): DeliveryReport {
  return { ...noFacts(clock.now()), kind: "trouble", stage, reason };
}

function noRoute(reason: string, clock: Clock): DeliveryReport {
  return { ...noFacts(clock.now()), kind: "undeliverable", verdict: "hard", reason };
}
