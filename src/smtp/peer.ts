import { isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";

/** Groups of 16 bits that one customer's IPv6 addresses have in common: a /64, all of which is theirs to use. */
const IPV6_CUSTOMER_GROUPS = 4;

/** The peer's address in its usual form: an IPv4 peer of an IPv6 socket (`::ffff:192.0.2.1`) in dotted form. */
export function plainAddress(remoteAddress: string): string {
  if (isIPv4(remoteAddress)) return remoteAddress;
  return ipaddr.isValid(remoteAddress) ? ipaddr.process(remoteAddress).toString() : remoteAddress;
}

/** Whether an address is this machine's own loopback. */
export function isLoopback(ip: string): boolean {
  if (isIPv4(ip)) return ip.startsWith("127.");
  return ipaddr.isValid(ip) && ipaddr.process(ip).range() === "loopback";
}

/** What connections are counted by: the IPv4 address, or the /64 of an IPv6 address. */
export function networkOf(ip: string): string {
  if (isIPv4(ip) || !ipaddr.IPv6.isValid(ip)) return ip;
  return `${ipaddr.IPv6.parse(ip).parts.slice(0, IPV6_CUSTOMER_GROUPS).join(":")}::/64`;
}

export interface AdmissionLimits {
  maxConnections: number;
  /** From one IPv4 address or one IPv6 /64; loopback is exempt. */
  maxConnectionsPerIp: number;
}

export interface Admission {
  /** Counts a connection in; false, and nothing counted, where it is one too many. */
  enter(ip: string): boolean;
  /** Counts out one that was let in. */
  leave(ip: string): void;
}

/** Counts open connections, in all and by where they come from. */
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
    // Networks without a connection are forgotten: the map holds no more than there are connections.
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

/** Remembers so many addresses, and forgets those first that were not added again for the longest time. */
export function createKnownPeers(most: number): KnownPeers {
  const known = new Set<string>();

  function add(ip: string): void {
    known.delete(ip);
    known.add(ip);
    const [oldest] = known;
    if (known.size > most && oldest !== undefined) known.delete(oldest);
  }

  return { has: (ip) => known.has(ip), add };
}
