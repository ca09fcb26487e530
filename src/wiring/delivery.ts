import { isIP } from "node:net";
import type { Config } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import { captureDelivery, mxDelivery, relayDelivery } from "../flows/send/deliver.ts";
import type { Deliver } from "../flows/send/outcome.ts";
import type { CustodyStatus } from "../flows/send/verdict.ts";
import { resolveAddresses } from "../net/lookups.ts";
import { findRoute } from "../net/mx.ts";
import type { Resolver } from "../net/resolver.ts";
import type { Pool } from "../smtp/client/pool.ts";
import { parseSmarthost } from "../smtp/client/smarthost.ts";

/** How mail leaves, as the settings say. */
export interface Outbound {
  deliver: Deliver;
  /** What a peer's 250 means. */
  custody: CustodyStatus;
}

/** The name we go by among mail servers: EHLO, banner, Received. */
export function mxName(config: Pick<Config, "serviceDomain">): string {
  return `mx.${config.serviceDomain}`;
}

/** Puts the delivery of the configured kind together. */
export function openOutbound(config: Config, clock: Clock, resolver: Resolver, pool: Pool): Outbound {
  const ehloName = mxName(config);
  if (config.delivery === "capture") return { deliver: captureDelivery(clock), custody: "delivered" };
  if (config.delivery === "relay") {
    const smarthost = parseSmarthost(config.smtpRelayUrl ?? "");
    return {
      deliver: relayDelivery(pool, smarthost, ehloName, addressesBy(resolver), clock),
      custody: "sent",
    };
  }
  const route = (domain: string) =>
    findRoute({ resolver, random: Math.random, allowPrivate: config.allowPrivateMx }, domain);
  return {
    deliver: mxDelivery({ pool, route, port: config.smtpOutPort, ehloName, clock }),
    custody: "delivered",
  };
}

/** Addresses of the smarthost, which is the operator's own and may be private; null where none is known now. */
function addressesBy(resolver: Resolver): (host: string) => Promise<readonly string[] | null> {
  return async (host) => {
    if (isIP(host) !== 0) return [host];
    const found = await resolveAddresses(resolver, host);
    return found.status === "ok" ? found.records : null;
  };
}
