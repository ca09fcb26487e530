import ipaddr from "ipaddr.js";

/** RFC 4291 §2.4, RFC 3587: the only part of IPv6 from which global unicast addresses are given out. */
const GLOBAL_UNICAST_V6 = ipaddr.IPv6.parseCIDR("2000::/3");

/**
 * Whether an address belongs to the public internet. Everything else is refused: private, loopback, link-local,
 * carrier-grade NAT, multicast, unspecified, reserved, documentation and benchmarking ranges, and every IPv6 form
 * that carries an IPv4 address inside (mapped, compatible, NAT64, 6to4, Teredo).
 *
 * The defence against server-side request forgery: a customer's URL or MX record must not reach our own network.
 * Only the usual spellings count as addresses at all; octal, hexadecimal, short and scoped ones are refused, because
 * two parsers may read them differently.
 */
export function isPublicAddress(ip: string): boolean {
  if (ipaddr.IPv4.isValidFourPartDecimal(ip)) return ipaddr.IPv4.parse(ip).range() === "unicast";
  if (!ip.includes(":") || ip.includes("%") || !ipaddr.IPv6.isValid(ip)) return false;
  const address = ipaddr.IPv6.parse(ip);
  return address.match(GLOBAL_UNICAST_V6) && address.range() === "unicast";
}
