import ipaddr from "ipaddr.js";

/** The name under which an address's PTR records lie (RFC 1035 §3.5, RFC 3596 §2.5); null where `ip` is no address. */
export function toReverseName(ip: string): string | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(ip)) return `${ip.split(".").reverse().join(".")}.in-addr.arpa`;
  if (!ipaddr.IPv6.isValid(ip) || ip.includes("%")) return null;
  const hex = Buffer.from(ipaddr.IPv6.parse(ip).toByteArray()).toString("hex");
  return `${[...hex].reverse().join(".")}.ip6.arpa`;
}
