import { isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";
import { setBounded } from "../../core/collections.ts";
import { networkOf } from "../../core/networks.ts";

/** Returns the peer's address; if it is IPv4 on an IPv6 socket (`::ffff:192.0.2.1`), in dotted form. */
export function plainAddress(remoteAddress: string): string {
  if (isIPv4(remoteAddress)) return remoteAddress;
  return ipaddr.isValid(remoteAddress) ? ipaddr.process(remoteAddress).toString() : remoteAddress;
}

/** Checks for a loopback address. */
export function isLoopback(ip: string): boolean {
  if (isIPv4(ip)) return ip.startsWith("127.");
  return ipaddr.isValid(ip) && ipaddr.process(ip).range() === "loopback";
}

export interface AdmissionLimits {
  maxConnections: number;
  /** From one IPv4 address or one IPv6 /64; loopback is exempt. */
  maxConnectionsPerIp: number;
}

export interface Admission {
  /** Counts a new connection. Returns false, and counts nothing, if that exceeds a limit. */
  enter(ip: string): boolean;
  /** Counts the end of a connection that was admitted. */
  leave(ip: string): void;
}

/** Limits open connections, in total and per network. */
export function createAdmission({ maxConnections, maxConnectionsPerIp }: AdmissionLimits): Admission {
  const perNetwork = new Map<string, number>();
  let total = 0;

  function enter(ip: string): boolean {
    const network = networkOf(ip);
    const fromThere = perNetwork.get(network) ?? 0;
    if (total >= maxConnections || (fromThere >= maxConnectionsPerIp && !isLoopback(ip))) return false;
    perNetwork.set(network, fromThere + 1);
    total++;
    return true;
  }

  function leave(ip: string): void {
    const network = networkOf(ip);
    const left = (perNetwork.get(network) ?? 0) - 1;
    // Networks without connections are removed, so the map is bounded by the connections.
    if (left > 0) perNetwork.set(network, left);
    else perNetwork.delete(network);
    total--;
  }

  return { enter, leave };
}

export interface KnownPeers {
  has(ip: string): boolean;
  add(ip: string): void;
}

/** Remembers up to `most` addresses. If it is full, forgets the one added longest ago. */
export function createKnownPeers(most: number): KnownPeers {
  const known = new Map<string, true>();
  return { has: (ip) => known.has(ip), add: (ip) => setBounded(known, ip, true, most) };
}
