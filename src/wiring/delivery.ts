import type { Config } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import { log } from "../log.ts";
import { capturePassage, mxPassages, relayPassage } from "../flows/send/deliver.ts";
import type { FindPassage, Passage } from "../flows/send/outcome.ts";
import { mxHost, simulatorDomain } from "../flows/own-names.ts";
import type { CustodyStatus } from "../flows/send/verdict.ts";
import { createGate } from "../core/gate.ts";
import { dnsServers } from "../net/dns/servers.ts";
import { addressesOfHost } from "../net/dns/lookups.ts";
import { createMtaSts, type MtaSts } from "../net/mta-sts.ts";
import { findRoute } from "../net/mx.ts";
import { createResolver, type Resolver } from "../net/dns/resolver.ts";
import { securityFor } from "../net/transport-security.ts";
import type { Pool } from "../smtp/client/pool.ts";
import { parseSmarthost } from "../smtp/client/smarthost.ts";
import type { Db } from "../store/engine/client.ts";
import { findStsPolicy, saveStsPolicy } from "../store/mta-sts.ts";

/** Port of the hosts where MTA-STS policies lie (RFC 8461 §3.3). */
const HTTPS_PORT = 443;
/** Time that a name server has for the first, quick look, milliseconds. */
const QUICK_LOOK_MS = 1_000;
/** Names that are looked up patiently at a time, and those that wait for that; more are put off. */
const PATIENT_LOOKS = 128;
const MAX_WAITING_LOOKS = 10_000;

/** How mail leaves, as the settings say. */
export interface Outbound {
  findPassage: FindPassage;
  /** What a peer's 250 means. */
  custody: CustodyStatus;
}

/** The name we go by among mail servers: EHLO, banner, Received. */
export function mxName(config: Pick<Config, "serviceDomain">): string {
  return mxHost(config.serviceDomain);
}

export interface OutboundDeps {
  clock: Clock;
  db: Db;
  resolver: Resolver;
  pool: Pool;
}

/** Puts the delivery of the configured kind together. */
export function openOutbound(config: Config, { clock, db, resolver, pool }: OutboundDeps): Outbound {
  const ehloName = mxName(config);
  if (config.delivery === "capture")
    return { findPassage: always(capturePassage(clock)), custody: "delivered" };
  if (config.delivery === "relay") {
    const smarthost = parseSmarthost(config.smtpRelayUrl ?? "");
    // It is the operator's own: its addresses may be private.
    const passage = relayPassage(pool, smarthost, ehloName, (host) => addressesOfHost(resolver, host), clock);
    return { findPassage: always(passage), custody: "sent" };
  }
  const { allowPrivateMx: allowPrivate, smtpOutPort: port } = config;
  // The system's own servers are often a router's or a provider's, whom nobody has said to trust.
  const trustsDnssec = config.dnsServers.length > 0;
  const looking = patientResolver(config, clock, resolver);
  const mtaSts = openMtaSts(clock, db, looking, allowPrivate);
  const byMx = mxPassages({
    pool,
    route: (domain) => findRoute({ resolver: looking, random: Math.random, allowPrivate }, domain),
    secure: (domain, hosts) => securityFor({ resolver: looking, mtaSts, port, trustsDnssec }, domain, hosts),
    port,
    ehloName,
    clock,
  });
  // Simulated recipients are answered here: there is nothing to look up.
  const simulator = simulatorDomain(config.serviceDomain);
  const findPassage: FindPassage = (domain) =>
    domain === simulator ? Promise.resolve(capturePassage(clock)) : byMx(domain);
  return { findPassage, custody: "delivered" };
}

function always(passage: Passage): FindPassage {
  return () => Promise.resolve(passage);
}

/** The policies of other people's domains, kept in the database. */
function openMtaSts(clock: Clock, db: Db, resolver: Resolver, allowPrivate: boolean): MtaSts {
  const store = {
    load: (domain: string) => findStsPolicy(db, domain),
    save: (policy: Parameters<typeof saveStsPolicy>[1]) => saveStsPolicy(db, policy),
  };
  return createMtaSts({ clock, resolver, log: log("net"), store }, { port: HTTPS_PORT, allowPrivate });
}

/**
 * Looks names up quickly first, over sockets of its own, and patiently where that has failed. Domains whose name
 * servers hang wait among themselves: a thousand of them would take all sockets for minutes, and everybody else's
 * mail would wait behind them.
 */
function patientResolver(config: Config, clock: Clock, patient: Resolver): Resolver {
  const quick = createResolver(
    { clock },
    { servers: dnsServers(config.dnsServers), tries: 1, tryTimeoutMs: QUICK_LOOK_MS },
  );
  const gate = createGate(PATIENT_LOOKS, MAX_WAITING_LOOKS);
  return {
    async resolve(...question) {
      const found = await quick.resolve(...question);
      if (found.status !== "failure") return found;
      return (await gate.run(() => patient.resolve(...question))) ?? found;
    },
  };
}
