import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { MAX_DNS_SERVERS } from "../../core/networks.ts";

/** Where a DNS server listens. */
export interface DnsServer {
  ip: string;
  port: number;
}

const DNS_PORT = 53;
const RESOLV_CONF = "/etc/resolv.conf";
/** What resolv.conf(5) says is asked when no server is named. */
const LOCAL_SERVER: DnsServer = { ip: "127.0.0.1", port: DNS_PORT };

/** A server from `ip`, `ip:port`, `[v6]` or `[v6]:port`; null where the text is none of them. */
export function parseDnsServer(text: string): DnsServer | null {
  if (isIP(text) !== 0) return { ip: text, port: DNS_PORT };
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+))(?::(\d{1,5}))?$/.exec(text);
  const ip = match?.[1] ?? match?.[2] ?? "";
  const port = match?.[3] === undefined ? DNS_PORT : Number(match[3]);
  const family = match?.[1] === undefined ? 4 : 6;
  return isIP(ip) === family && port >= 1 && port <= 65535 ? { ip, port } : null;
}

/** The `nameserver` lines of a resolv.conf(5); interface scopes are cut off. */
export function parseResolvConf(text: string): DnsServer[] {
  return text
    .split("\n")
    .map((line) => /^\s*nameserver\s+([^\s#;%]+)/.exec(line)?.[1] ?? "")
    .filter((ip) => isIP(ip) !== 0)
    .map((ip) => ({ ip, port: DNS_PORT }));
}

/**
 * The servers named, or the system's when none is.
 * @param path of the system's resolv.conf
 * @throws Error for a text that names no server
 */
export function dnsServers(texts: readonly string[], path = RESOLV_CONF): DnsServer[] {
  const servers = texts.length > 0 ? texts.map(parsed) : systemServers(path);
  return servers.slice(0, MAX_DNS_SERVERS);
}

function parsed(text: string): DnsServer {
  const server = parseDnsServer(text);
  if (server === null) throw new Error(`${JSON.stringify(text)} is no DNS server: ip or ip:port is meant`);
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
