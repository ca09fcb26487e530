import ipaddr from "ipaddr.js";

/** Maximum number of configured name servers. A lookup tries each of them, so the number must be small. */
export const MAX_DNS_SERVERS = 8;

/** 16-bit groups that the IPv6 addresses of one customer share: a /64. */
const IPV6_CUSTOMER_GROUPS = 4;

/** An address of ours that mail leaves from. */
export interface Egress {
  ip: string;
  /** The pool that it belongs to. Null for the usual one. */
  pool: string | null;
  /** Name in EHLO. Null for the installation's. */
  name: string | null;
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

function isAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text);
}

/** Parses an address, or a network as `address/bits`. Returns null if the text is neither. */
function parseNetwork(text: string): [Address, number] | null {
  // The library also accepts an address in fewer than four numbers, which is a typing mistake here.
  if (!isAddress(text.split("/", 1)[0] ?? "")) return null;
  try {
    if (text.includes("/")) return ipaddr.parseCIDR(text);
    const base = ipaddr.process(text);
    return [base, base.kind() === "ipv4" ? 32 : 128];
  } catch {
    return null;
  }
}

/** Returns whether the text is an address or a network. */
export function isNetwork(text: string): boolean {
  return parseNetwork(text) !== null;
}

/** Returns an address in the one spelling that we store; null if the text is none. */
export function plainAddress(text: string): string | null {
  return isAddress(text) ? ipaddr.process(text).toString() : null;
}

/** Returns the addresses without duplicates, in one spelling. */
export function distinctAddresses(texts: readonly string[]): string[] {
  return [...new Set(texts.map((text) => ipaddr.process(text).toString()))];
}

/** Returns the address to connect to for a listener on this machine: a wildcard is no destination. */
export function reachableAddress(ip: string): string {
  if (ip === "0.0.0.0") return "127.0.0.1";
  return ip === "::" ? "::1" : ip;
}

/** Returns whether the address is in one of the networks. An IPv4 address on an IPv6 socket counts as IPv4. */
export function isInNetworks(ip: string, networks: readonly string[]): boolean {
  if (networks.length === 0 || !isAddress(ip)) return false;
  const address = ipaddr.process(ip);
  return networks.some((text) => {
    const network = parseNetwork(text);
    return network !== null && network[0].kind() === address.kind() && address.match(network[0], network[1]);
  });
}

/** Returns an entry of `X-Forwarded-For` without its port. Azure's gateway and IIS write one after the address. */
function withoutPort(hop: string): string {
  return /^([\d.]+|\[[^\]]+\])(?::\d+)?$/.exec(hop)?.[1]?.replace(/^\[|\]$/g, "") ?? hop;
}

/**
 * Returns the address of the client that made a request. Each proxy appends the address that called it to
 * `X-Forwarded-For`. The list is read from its end, and only while the writer is a proxy of ours, because a client
 * can invent the rest.
 * @param peer address of the connection's other end
 * @param proxies addresses and networks of our proxies
 */
export function clientAddress(peer: string, forwardedFor: string | null, proxies: readonly string[]): string {
  let client = peer;
  for (const hop of (forwardedFor ?? "").split(",").reverse()) {
    if (!isInNetworks(client, proxies)) return client;
    const address = withoutPort(hop.trim());
    if (!isAddress(address)) return client;
    client = ipaddr.process(address).toString();
  }
  return client;
}

/** Returns the network that connections and requests of one client are counted by: the IPv4 address, or the /64 of an IPv6 address. */
export function networkOf(ip: string): string {
  if (!isAddress(ip)) return ip;
  const address = ipaddr.process(ip);
  if (address instanceof ipaddr.IPv4) return address.toString();
  return `${address.parts.slice(0, IPV6_CUSTOMER_GROUPS).join(":")}::/64`;
}

/** Joins host and port as in a URL: an IPv6 address is in brackets (RFC 3986 §3.2.2). */
export function hostPort(host: string, port: unknown): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]:${port}` : `${host}:${port}`;
}
