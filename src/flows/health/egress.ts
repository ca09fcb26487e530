import { isIP, isIPv4 } from "node:net";
import type { Egress } from "../../core/networks.ts";
import type { Clock } from "../../core/time/clock.ts";
import { addressesOfHost, toReverseName } from "../../net/dns/lookups.ts";
import { isOwnAddress } from "../../net/own-address.ts";
import type { Resolver } from "../../net/dns/resolver.ts";
import { shortTimeouts } from "../../smtp/client/delivery.ts";
import { openSession } from "../../smtp/client/open-session.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/** Timeouts of the connection and of each reply, milliseconds. Together they are less than the limit of a check. */
const CONNECT_MS = 2_000;
const REPLY_MS = 1_000;
/** Timeout of the greeting, which some servers delay for unknown clients, milliseconds. */
const GREETING_MS = 1_500;

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
}

/** Checks that this machine has the addresses of EGRESS, and that a mail server elsewhere can be reached. It only connects to a server that the operator names. */
export function egressCheck(parts: EgressParts, target: { host: string; port: number } | null): Check {
  return {
    name: "egress",
    fix: "Name another mail server, and check that DNS_SERVERS are reachable.",
    run() {
      const missing = parts.egress.map(({ ip }) => ip).filter((ip) => !isOwnAddress(ip));
      if (missing.length > 0)
        return fail(
          `EGRESS names ${missing.join(", ")}, which this machine does not have, so no mail can leave from there.`,
          "Give a network interface of this machine the address, or remove it from EGRESS.",
        );
      if (target !== null) return greet(parts, target);
      if (!parts.direct) return ok("Messages do not leave by port 25.");
      return warn(
        "Outbound port 25 was not tested, and many providers block it.",
        "Name a mail server to test it with, such as --egress mx.example.net. No message is sent.",
      );
    },
  };
}

async function greet(
  { clock, resolver, hostname, publicIps }: EgressParts,
  { host, port }: { host: string; port: number },
): Promise<Finding> {
  const [ip] = (await addressesOfHost(resolver, host)) ?? [];
  if (ip === undefined) throw new Error(`${host} has no address`);
  const timeouts = { ...shortTimeouts(CONNECT_MS, REPLY_MS), greeting: GREETING_MS };
  const options = { host, ip, port, tls: "never", implicitTls: false, ehloName: hostname, timeouts } as const;
  const said: string[] = [];
  const opening = await openSession({ clock }, options, said);
  if (opening.kind === "open") {
    await opening.session.transport.exchange([Buffer.from("QUIT\r\n")], [REPLY_MS]);
    opening.session.transport.close("done");
    const source = sourceIn(said, ip);
    if (source === null) return ok(`${host} [${ip}] port ${port} greets ${hostname}.`);
    if (publicIps.some((own) => isSameAddress(own, source)))
      return ok(`${host} [${ip}] port ${port} greets ${hostname} from ${source}.`);
    return fail(
      `${host} [${ip}] sees us at ${source}, which PUBLIC_IPS lacks: SPF and PTR are for other addresses.`,
      isIPv4(source)
        ? `Add ${source} to PUBLIC_IPS.`
        : `Add ${source} to PUBLIC_IPS, or set SMTP_OUT_IPV6=0.`,
    );
  }
  const { result } = opening;
  if (result.kind === "reply")
    return warn(
      `${host} [${ip}] answers ${result.code}: ${result.text}`,
      "Read the reply, and check whether this address is on a block list.",
    );
  const why = result.kind === "trouble" ? result.reason : result.kind;
  if (!NOT_REACHED.test(why))
    return warn(
      `${host} [${ip}] port ${port} was reached, but the session failed: ${why}`,
      "Try another mail server.",
    );
  return fail(
    `${host} [${ip}] port ${port} cannot be reached: ${why}`,
    "Ask your provider to open outbound port 25, or send through a smarthost (SMTP_RELAY_URL).",
  );
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
