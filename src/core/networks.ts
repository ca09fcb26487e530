import ipaddr from "ipaddr.js";

/** Name servers that are asked at most: the tries of a lookup must end. */
export const MAX_DNS_SERVERS = 8;

type Address = ipaddr.IPv4 | ipaddr.IPv6;

function isAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text);
}

/** An address, or a network as `address/bits`; null where the text is neither. */
function parseNetwork(text: string): [Address, number] | null {
  // The library also reads an address in fewer than four numbers, which is a slip here.
  if (!isAddress(text.split("/", 1)[0] ?? "")) return null;
  try {
    if (text.includes("/")) return ipaddr.parseCIDR(text);
    const base = ipaddr.process(text);
    return [base, base.kind() === "ipv4" ? 32 : 128];
  } catch {
    return null;
  }
}

/** Whether the text is an address or a network. */
export function isNetwork(text: string): boolean {
  return parseNetwork(text) !== null;
}

/** Addresses, each once, however often and in whatever spelling it is named. */
export function distinctAddresses(texts: readonly string[]): string[] {
  return [...new Set(texts.map((text) => ipaddr.process(text).toString()))];
}

/** Whether the address lies within one of the networks. An IPv4 address counts the same on an IPv6 socket. */
export function isInNetworks(ip: string, networks: readonly string[]): boolean {
  if (networks.length === 0 || !isAddress(ip)) return false;
  const address = ipaddr.process(ip);
  return networks.some((text) => {
    const network = parseNetwork(text);
    return network !== null && network[0].kind() === address.kind() && address.match(network[0], network[1]);
  });
}

/** An entry of `X-Forwarded-For` without its port, which Azure's gateway and IIS write behind the address. */
function withoutPort(hop: string): string {
  return /^([\d.]+|\[[^\]]+\])(?::\d+)?$/.exec(hop)?.[1]?.replace(/^\[|\]$/g, "") ?? hop;
}

/**
 * Who a request comes from. Each proxy adds the address it was asked by at the end of `X-Forwarded-For`, so the list is
 * read from there, and only as far as proxies that are ours wrote it: the rest a client may have made up.
 * @param peer address of the connection's other end
 * @param proxies addresses and networks of our own proxies
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
