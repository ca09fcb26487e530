import type { Clock } from "../../core/clock.ts";
import { addressesOfHost } from "../../net/dns/lookups.ts";
import type { Resolver } from "../../net/dns/resolver.ts";
import { openConnection } from "../../smtp/client/connection.ts";
import { shortTimeouts } from "../../smtp/client/delivery.ts";
import type { Smarthost } from "../../smtp/client/smarthost.ts";
import { type Check, fail, type Finding, ok } from "./check.ts";

/** Time for the connection, and for each reply, milliseconds. */
const CONNECT_MS = 2_000;
const REPLY_MS = 1_500;
const FIX = "see SMTP_RELAY_URL: host, port, user and password, these percent-encoded";

export interface SmarthostParts {
  clock: Clock;
  resolver: Resolver;
  /** The name we say EHLO with. */
  hostname: string;
}

/** Whether the smarthost can be reached and takes our login, as mail would have it; it is left before any mail. */
export function smarthostCheck(parts: SmarthostParts, smarthost: () => Smarthost): Check {
  return { name: "smarthost", fix: FIX, run: () => logIn(parts, smarthost()) };
}

async function logIn({ clock, resolver, hostname }: SmarthostParts, smarthost: Smarthost): Promise<Finding> {
  const { host, port, auth } = smarthost;
  const addresses = (await addressesOfHost(resolver, host)) ?? [];
  const [ip] = addresses;
  if (ip === undefined) return fail(`${host} has no address`, FIX);
  const options = { ...smarthost, hosts: [{ name: host, addresses }], ip, ehloName: hostname };
  const connecting = await openConnection(
    { clock },
    { ...options, timeouts: shortTimeouts(CONNECT_MS, REPLY_MS) },
    [],
  );
  const at = `${host} [${ip}] port ${port}`;
  if (connecting.kind === "failed") {
    const { result } = connecting;
    return fail(`${at}: ${result.kind === "trouble" ? result.reason : `${result.code} ${result.text}`}`, FIX);
  }
  const { connection } = connecting;
  const tls = connection.tls?.name ?? "in the clear";
  await connection.quit();
  return ok(`${at} ${auth === undefined ? "greets us" : "takes our login"}, ${tls}`);
}
