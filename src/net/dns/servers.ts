import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { MAX_DNS_SERVERS } from "../../core/networks.ts";

/** Address and port of a DNS server. */
export interface DnsServer {
  ip: string;
  port: number;
}

const DNS_PORT = 53;
const RESOLV_CONF = "/etc/resolv.conf";
/** The default of resolv.conf(5) if it names no server. */
const LOCAL_SERVER: DnsServer = { ip: "127.0.0.1", port: DNS_PORT };

/** Parses `ip`, `ip:port`, `[v6]` or `[v6]:port`. Returns null for any other text. */
export function parseDnsServer(text: string): DnsServer | null {
  if (isIP(text) !== 0) return { ip: text, port: DNS_PORT };
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+))(?::(\d{1,5}))?$/.exec(text);
  const ip = match?.[1] ?? match?.[2] ?? "";
  const port = match?.[3] === undefined ? DNS_PORT : Number(match[3]);
  const family = match?.[1] === undefined ? 4 : 6;
  return isIP(ip) === family && port >= 1 && port <= 65535 ? { ip, port } : null;
}

/** Reads the `nameserver` lines of a resolv.conf(5), without interface scopes. */
export function parseResolvConf(text: string): DnsServer[] {
  return text
    .split("\n")
    .map((line) => /^\s*nameserver\s+([^\s#;%]+)/.exec(line)?.[1] ?? "")
    .filter((ip) => isIP(ip) !== 0)
    .map((ip) => ({ ip, port: DNS_PORT }));
}

/**
 * Returns the servers named in `texts`, or the system's if there are none.
 * @param path of the system's resolv.conf
 * @throws Error if a text is not a server
 */
export function dnsServers(texts: readonly string[], path = RESOLV_CONF): DnsServer[] {
  const servers = texts.length > 0 ? texts.map(parsed) : systemServers(path);
  return servers.slice(0, MAX_DNS_SERVERS);
}

function parsed(text: string): DnsServer {
  const server = parseDnsServer(text);
  if (server === null) throw new Error(`${JSON.stringify(text)} is not a DNS server: use ip or ip:port`);
  return server;
}

function systemServers(path: string): DnsServer[] {
  try {
    const servers = parseResolvConf(readFileSync(path, "utf8"));
    return servers.length > 0 ? servers : [LOCAL_SERVER];
  } catch {
    return [LOCAL_SERVER];
  }
}
