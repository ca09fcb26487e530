import { isIP } from "node:net";
import type { Config } from "../../config.ts";
import { reachableAddress } from "../../core/networks.ts";
import { refused } from "./exit.ts";

/** Returns the address at which this machine reaches the service. */
export function localAddress({ host, port }: Config): { host: string; port: number } {
  if (port === 0) throw refused("PORT is 0, so the port of the service is not known: set PORT");
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  return { host: isIP(bare) === 0 ? host : reachableAddress(bare), port };
}
