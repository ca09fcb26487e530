import { isIP, isIPv4, isIPv6 } from "node:net";
import type { Egress } from "../../core/networks.ts";
import type { Clock } from "../../core/time/clock.ts";
import { addressesOfHost, toReverseName } from "../../net/dns/lookups.ts";
import { isPublicAddress } from "../../net/address-guard.ts";
import { isOwnAddress } from "../../net/own-address.ts";
import type { Resolver } from "../../net/dns/resolver.ts";
import { shortTimeouts } from "../../smtp/client/delivery.ts";
import { openSession } from "../../smtp/client/open-session.ts";
import type { TlsState } from "../../smtp/client/transport.ts";
import { ALWAYS_TLS, providerLane } from "../lanes/providers.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/** Timeouts of the connection and of each reply, milliseconds. Together they are less than the limit of a check. */
const CONNECT_MS = 1_400;
const REPLY_MS = 600;
/** Timeout of the greeting, which some servers delay for unknown clients, milliseconds. */
const GREETING_MS = 1_200;

export interface EgressParts {
  clock: Clock;
  resolver: Resolver;
  /** Our EHLO name. */
  hostname: string;
  /** Addresses that our SPF and PTR records are for. */
  publicIps: readonly string[];
  /** True if messages go straight to MX hosts. */
  direct: boolean;
  /** Our own addresses that the settings name. */
  egress: readonly Egress[];
  /** True if mail may leave over IPv6. */
  ipv6: boolean;
}

/** What the finding says if there was no connection. */
const UNREACHED = "cannot be reached";

type Target = { host: string; port: number };

/**
 * Checks that this machine has the addresses of EGRESS, and that a mail server elsewhere can be reached and offers TLS. It only
 * connects to a server that the operator names, over IPv4 and, if mail leaves by it, over IPv6.
 */
export function egressChecks(parts: EgressParts, target: Target | null): Check[] {
  const fix = "Name another mail server, and check that DNS_SERVERS are reachable.";
  const run = async (): Promise<Finding> => {
    const missing = parts.egress.map(({ ip }) => ip).filter((ip) => !isOwnAddress(ip));
    if (missing.length > 0)
      return fail(
        `EGRESS names ${missing.join(", ")}, which this machine does not have, so no mail can leave from there.`,
        "Give a network interface of this machine the address, or remove it from EGRESS.",
      );
    if (target !== null) {
      const addresses = await addressesOf(parts, target);
      const ip = addresses.find(isIPv4) ?? addresses[0];
      if (ip === undefined) throw new Error(`${target.host} has no address`);
      return greet(parts, target, ip);
    }
    if (!parts.direct) return ok("Messages do not leave by port 25.");
    return warn(
      "Outbound port 25 was not tested, and many providers block it.",
      "Name a mail server to test it with, such as --egress mx.example.net. No message is sent.",
    );
  };
  const checks: Check[] = [{ name: "egress", fix, run }];
  if (target === null || isIPv4(target.host) || !parts.ipv6) return checks;
  return [...checks, { name: "egress ipv6", fix, run: () => greetByIPv6(parts, target) }];
}

async function addressesOf({ resolver }: EgressParts, { host }: Target): Promise<readonly string[]> {
  return (await addressesOfHost(resolver, host)) ?? [];
}

/** A machine without IPv6 sends by IPv4 alone, so that is a fault only if PUBLIC_IPS or EGRESS names an address of IPv6. */
async function greetByIPv6(parts: EgressParts, target: Target): Promise<Finding> {
  const ip = (await addressesOf(parts, target)).find(isIPv6);
  if (ip === undefined) return ok(`${target.host} has no IPv6 address, so IPv6 was not tested.`);
  const finding = await greet(parts, target, ip);
  const isMeant = [...parts.publicIps, ...parts.egress.map((one) => one.ip)].some(isIPv6);
  return finding.status === "fail" && !isMeant && finding.message.includes(UNREACHED)
    ? ok("No mail leaves over IPv6: this machine cannot connect by it.")
    : finding;
}

async function greet(
  { clock, hostname, publicIps }: EgressParts,
  { host, port }: Target,
  ip: string,
): Promise<Finding> {
  const timeouts = { ...shortTimeouts(CONNECT_MS, REPLY_MS), greeting: GREETING_MS };
  const options = {
    host,
    ip,
    port,
    tls: "opportunistic",
    implicitTls: false,
    ehloName: hostname,
    timeouts,
  } as const;
  const said: string[] = [];
  const opening = await openSession({ clock }, options, said);
  if (opening.kind === "open") {
    const { transport, tls } = opening.session;
    const source = sourceIn(said, ip) ?? publicOnly(transport.localAddress());
    await transport.exchange([Buffer.from("QUIT\r\n")], [REPLY_MS]);
    transport.close("done");
    return (
      sourceFault({ source, publicIps, at: `${host} [${ip}]` }) ??
      greeted(host, ip, port, { tls, source, hostname })
    );
  }
  const { result } = opening;
  if (result.kind === "reply")
    return warn(
      `${host} [${ip}] answers ${result.code}: ${result.text}`,
      "Read the reply, and check whether this address is on a block list.",
    );
  const why = result.kind === "trouble" ? result.reason : result.kind;
  if (result.kind === "trouble" && result.stage === "starttls") return noTls(host, ip, port, why);
  if (!NOT_REACHED.test(why))
    return warn(
      `${host} [${ip}] port ${port} was reached, but the session failed: ${why}`,
      "Try another mail server.",
    );
  return fail(
    `${host} [${ip}] port ${port} ${UNREACHED}: ${why}`,
    "Ask your provider to open outbound port 25, or send through a smarthost (SMTP_RELAY_URL).",
  );
}

/** We know no version before TLS 1.2, so that a server of an older one agrees on none. */
function noTls(host: string, ip: string, port: number, why: string): Finding {
  return (isAlwaysTls(host) ? fail : warn)(
    `${host} [${ip}] port ${port} does not agree on TLS 1.2 with us, which providers require: ${why}`,
    "Check what ends TLS on the way, such as a firewall that inspects SMTP.",
  );
}

function isAlwaysTls(host: string): boolean {
  return ALWAYS_TLS.has(providerLane([host])?.provider.name ?? "");
}

interface Seen {
  source: string | null;
  publicIps: readonly string[];
  /** The server, in words. */
  at: string;
}

function sourceFault({ source, publicIps, at }: Seen): Finding | null {
  if (source === null || publicIps.some((own) => isSameAddress(own, source))) return null;
  return fail(
    `${at} sees us at ${source}, which PUBLIC_IPS lacks: SPF and PTR are for other addresses.`,
    isIPv4(source) ? `Add ${source} to PUBLIC_IPS.` : `Add ${source} to PUBLIC_IPS, or set SMTP_OUT_IPV6=0.`,
  );
}

/** Google and Microsoft offer STARTTLS and refuse mail in the clear, so there something on the way takes it out of the reply. */
function greeted(
  host: string,
  ip: string,
  port: number,
  { tls, source, hostname }: { tls: TlsState | null; source: string | null; hostname: string },
): Finding {
  const at = `${host} [${ip}] port ${port}`;
  if (tls === null && isAlwaysTls(host))
    return fail(
      `${at} offers us no STARTTLS, although it offers it to everyone.`,
      "Something on the way takes it out of the reply. Switch off SMTP inspection in the firewall.",
    );
  const from = source === null ? "" : ` from ${source}`;
  const over = tls === null ? "" : `, ${tls.name}`;
  return ok(`${at} greets ${hostname}${from}${over}.`);
}

/** Returns an address if it is public: behind NAT the machine's own address is not the one that servers see. */
function publicOnly(ip: string | null): string | null {
  return ip !== null && isPublicAddress(ip) ? ip : null;
}

/**
 * Returns our address as the server sees it: Google and others name it in the reply to EHLO. Null if it names none. The server's own
 * address is not meant.
 */
function sourceIn(transcript: readonly string[], server: string): string | null {
  const words = transcript
    .filter((line) => line.startsWith("S: 250"))
    .join(" ")
    .split(/[^0-9a-fA-F.:]+/);
  return words.find((word) => isIP(word) !== 0 && !isSameAddress(word, server)) ?? null;
}

function isSameAddress(one: string, other: string): boolean {
  return toReverseName(one) === toReverseName(other);
}

/** Matches the reason if there was no connection. */
const NOT_REACHED = /^connection (?:timed out|failed)/;
