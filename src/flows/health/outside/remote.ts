import type { Clock } from "../../../core/time/clock.ts";
import { resolveAddresses, resolveMx } from "../../../net/dns/lookups.ts";
import type { Resolver } from "../../../net/dns/resolver.ts";
import { shortTimeouts } from "../../../smtp/client/delivery.ts";
import { type Check, fail, type Finding, ok, worstOf } from "../check.ts";
import { unsubscribeCheck } from "./links.ts";
import { visitListener } from "./listener.ts";

export interface RemoteParts {
  clock: Clock;
  resolver: Resolver;
  /** Public URL of the installation. */
  url: string;
  /** Null: only the URL is checked. */
  serviceDomain: string | null;
  /** Trusted authorities in PEM, and another port than 25, for tests. */
  ca?: string | undefined;
  port?: number;
}

const SMTP_PORT = 25;
/** Timeouts of the connection and of each reply, milliseconds. */
const [CONNECT_MS, REPLY_MS] = [1_500, 700];
/** Maximum number of MX hosts, and of addresses of one host, that are tried. */
const [MAX_HOSTS, MAX_ADDRESSES] = [3, 2];
const FRESH = { fresh: true };
const DNS_FIX = "Check that DNS_SERVERS are reachable.";

/**
 * Returns the checks of an installation on another machine, as the world reaches it: names come from DNS, and connections go to
 * public addresses. The installation itself cannot tell whether a firewall keeps others out.
 */
export function remoteChecks(parts: RemoteParts): Check[] {
  const { serviceDomain } = parts;
  const page = unsubscribeCheck(parts, parts.url);
  if (serviceDomain === null) return [page];
  return [page, { name: "port 25", run: () => look(parts, serviceDomain), fix: DNS_FIX }];
}

async function look(
  { clock, resolver, port = SMTP_PORT }: RemoteParts,
  serviceDomain: string,
): Promise<Finding> {
  const found = await resolveMx(resolver, serviceDomain, FRESH);
  if (found.status === "failure") throw new Error(`${serviceDomain} MX cannot be looked up: ${found.reason}`);
  const hosts = found.status === "ok" ? found.records.slice(0, MAX_HOSTS) : [];
  const peers = (await Promise.all(hosts.map(({ exchange }) => peersOf(resolver, exchange)))).flat();
  if (peers.length === 0)
    return fail(
      `${serviceDomain} has no MX host with an address.`,
      `Publish "${serviceDomain} MX 10 mx.${serviceDomain}" and the address of that host.`,
    );
  const timeouts = shortTimeouts(CONNECT_MS, REPLY_MS);
  const visits = await Promise.all(
    peers.map(({ hostname, ip }) => visitListener({ clock, hostname, serviceDomain, port }, ip, timeouts)),
  );
  const faults = visits.flatMap(({ fault }) => fault ?? []);
  const unreached = visits.find(({ reached }) => !reached)?.fault ?? null;
  const worst = unreached ?? faults.find(({ status }) => status === worstOf(faults));
  const at = peers.map(({ hostname, ip }) => `${hostname} [${ip}]`).join(", ");
  if (worst === undefined) return ok(`Port ${port} takes mail to the role mailboxes over TLS: ${at}.`);
  // The certificate matters only to some senders; a listener that no one reaches gets no mail at all.
  const status = worst === unreached ? "fail" : worst.status;
  return {
    ...worst,
    status,
    fix: `${worst.fix ?? ""} Forward port ${port} to SMTP_PORT in firewall and router.`,
  };
}

async function peersOf(resolver: Resolver, hostname: string): Promise<{ hostname: string; ip: string }[]> {
  const found = await resolveAddresses(resolver, hostname, FRESH);
  return found.status === "ok" ? found.records.slice(0, MAX_ADDRESSES).map((ip) => ({ hostname, ip })) : [];
}
