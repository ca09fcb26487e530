import type { Clock } from "../../core/time/clock.ts";
import { addressesOfHost } from "../../net/dns/lookups.ts";
import type { Resolver } from "../../net/dns/resolver.ts";
import { openConnection } from "../../smtp/client/connection.ts";
import { shortTimeouts } from "../../smtp/client/delivery.ts";
import type { Smarthost } from "../../smtp/client/smarthost.ts";
import { type Check, fail, type Finding, ok } from "./check.ts";

/** Timeouts of the connection and of each reply, milliseconds. */
const CONNECT_MS = 2_000;
const REPLY_MS = 1_500;
const FIX =
  "Check host, port, user and password in SMTP_RELAY_URL. User and password must be percent-encoded.";

export interface SmarthostParts {
  clock: Clock;
  resolver: Resolver;
  /** Our EHLO name. */
  hostname: string;
}

/** Checks that the smarthost can be reached and accepts our login. It sends no message. */
export function smarthostCheck(parts: SmarthostParts, smarthost: () => Smarthost): Check {
  return { name: "smarthost", fix: FIX, run: () => logIn(parts, smarthost()) };
}

async function logIn({ clock, resolver, hostname }: SmarthostParts, smarthost: Smarthost): Promise<Finding> {
  const { host, port, auth } = smarthost;
  const addresses = (await addressesOfHost(resolver, host)) ?? [];
  const [ip] = addresses;
  if (ip === undefined) return fail(`${host} has no address.`, FIX);
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
  const tls = connection.tls?.name ?? "without encryption";
  await connection.quit();
  return ok(`${at} ${auth === undefined ? "greets us" : "accepts our login"}, ${tls}.`);
}
