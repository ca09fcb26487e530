import ipaddr from "ipaddr.js";
import { isInNetworks } from "../core/networks.ts";

/** RFC 4291 §2.4, RFC 3587: the only IPv6 range from which global unicast addresses are assigned. */
const GLOBAL_UNICAST_V6 = ipaddr.IPv6.parseCIDR("2000::/3");

/**
 * Networks of cloud providers that look public but are reachable only from inside a cloud. All other metadata services
 * are in ranges that are refused below: 169.254.0.0/16, 100.100.100.200, 192.0.0.192, fd00:ec2::254 and similar.
 */
const CLOUD_FABRIC: readonly string[] = [
  // Azure's platform address: DHCP, DNS, health probes and the agent's configuration.
  "168.63.129.16",
  // IBM Cloud's service endpoints.
  "161.26.0.0/16",
  "166.8.0.0/14",
];

/**
 * Returns true if an address is on the public internet. Refuses private, loopback, link-local, carrier-grade NAT,
 * multicast, unspecified, reserved, documentation and benchmarking ranges, and cloud fabric. Also refuses every
 * IPv6 form with an embedded IPv4 address (mapped, compatible, NAT64, 6to4, Teredo).
 *
 * The defence against server-side request forgery: a customer's URL or MX record must not reach our own network. Only
 * the usual spellings count as addresses. Octal, hexadecimal, short and scoped ones are refused, because two parsers
 * may read them differently.
 */
export function isPublicAddress(ip: string): boolean {
  if (ipaddr.IPv4.isValidFourPartDecimal(ip))
    return ipaddr.IPv4.parse(ip).range() === "unicast" && !isInNetworks(ip, CLOUD_FABRIC);
  if (!ip.includes(":") || ip.includes("%") || !ipaddr.IPv6.isValid(ip)) return false;
  const address = ipaddr.IPv6.parse(ip);
  return address.match(GLOBAL_UNICAST_V6) && address.range() === "unicast";
}

/**
 * Returns whether we may connect to an address that a customer or a domain chose. `allowPrivate` is for development.
 */
export type AddressGuard = (ip: string, allowPrivate: boolean) => boolean;

/** Rules of one installation, in addition to `isPublicAddress`: addresses, or networks as `address/bits`. */
export interface AddressRules {
  /** Our own addresses. If a request came through them, our services would trust it as local. */
  own: () => readonly string[];
  /** Refused even if private addresses are allowed. */
  denied: readonly string[];
}

/** Creates the guard of an installation. */
export function openAddressGuard({ own, denied }: AddressRules): AddressGuard {
  return (ip, allowPrivate) => {
    if (isInNetworks(ip, denied)) return false;
    return allowPrivate || (isPublicAddress(ip) && !isInNetworks(ip, own()));
  };
}
