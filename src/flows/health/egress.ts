import type { Clock } from "../../core/clock.ts";
import { addressesOfHost } from "../../net/dns/lookups.ts";
import type { Resolver } from "../../net/dns/resolver.ts";
import { shortTimeouts } from "../../smtp/client/delivery.ts";
import { openSession } from "../../smtp/client/opening.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/** Time for the connection, and for each reply, milliseconds: together less than a check has. */
const CONNECT_MS = 2_000;
const REPLY_MS = 1_000;
/** Some let strangers wait before they greet them. */
const GREETING_MS = 1_500;

export interface EgressParts {
  clock: Clock;
  resolver: Resolver;
  /** The name we say EHLO with. */
  hostname: string;
  /** Whether mail leaves for other people's hosts. */
  direct: boolean;
}

/** Whether a mail server elsewhere can be reached. Only one that the operator names: nobody else is bothered by us. */
export function egressCheck(parts: EgressParts, target: { host: string; port: number } | null): Check {
  return {
    name: "egress",
    fix: "name another mail server, and see that DNS_SERVERS answer",
    run() {
      if (target !== null) return greet(parts, target);
      if (!parts.direct) return ok("mail does not leave by port 25");
      return warn(
        "not tried whether port 25 of other hosts can be reached, which many providers block",
        "name a mail server to try it with, e.g. --egress mx.example.net: it is greeted and left",
      );
    },
  };
}

async function greet(
  { clock, resolver, hostname }: EgressParts,
  { host, port }: { host: string; port: number },
): Promise<Finding> {
  const [ip] = (await addressesOfHost(resolver, host)) ?? [];
  if (ip === undefined) throw new Error(`${host} has no address`);
  const timeouts = { ...shortTimeouts(CONNECT_MS, REPLY_MS), greeting: GREETING_MS };
  const options = { host, ip, port, tls: "never", implicitTls: false, ehloName: hostname, timeouts } as const;
  const opening = await openSession({ clock }, options, []);
  if (opening.kind === "open") {
    await opening.session.wire.exchange([Buffer.from("QUIT\r\n")], [REPLY_MS]);
    opening.session.wire.cut("done");
    return ok(`${host} [${ip}] port ${port} greets ${hostname}`);
  }
  const { result } = opening;
  if (result.kind === "reply")
    return warn(
      `${host} [${ip}] answers ${result.code}: ${result.text}`,
      "see what it has against this machine",
    );
  const why = result.kind === "trouble" ? result.reason : result.kind;
  if (!NOT_REACHED.test(why))
    return warn(`${host} [${ip}] port ${port} was reached, and then: ${why}`, "try another mail server");
  return fail(
    `${host} [${ip}] port ${port} cannot be reached: ${why}`,
    "ask your provider to open outbound port 25, or send through a smarthost (SMTP_RELAY_URL)",
  );
}

/** How the reason begins where no connection came about. */
const NOT_REACHED = /^connection (?:timed out|failed)/;
