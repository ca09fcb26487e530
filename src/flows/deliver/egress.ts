import { createHash } from "node:crypto";
import type { Egress } from "../../core/networks.ts";
import type { SecuredHost } from "../../net/transport-security.ts";
import type { Destination } from "../../smtp/client/delivery.ts";

/** The pool that bulk mail leaves from, if it has an address. */
export const BULK_POOL = "bulk";

/**
 * Returns the addresses of a pool in the order in which a domain's mail tries them; the usual pool's if that one has no
 * address. The order depends on the domain alone, so providers see its mail come from one address, and the domains share
 * all of them.
 */
export function egressesOf(all: readonly Egress[], pool: string | null, domain: string): Egress[] {
  const own = all.filter((egress) => egress.pool === pool);
  const chosen = own.length > 0 ? own : all.filter((egress) => egress.pool === null);
  return chosen
    .map((egress) => ({ egress, lot: lotOf(domain, egress.ip) }))
    .sort((a, b) => (a.lot < b.lot ? -1 : 1))
    .map(({ egress }) => egress);
}

function lotOf(domain: string, ip: string): string {
  return createHash("sha256").update(`${domain} ${ip}`).digest("hex");
}

/** Returns the hosts with an address that fits, and only those addresses. */
export function reachedFrom(hosts: readonly SecuredHost[], fits: (ip: string) => boolean): SecuredHost[] {
  return hosts
    .map((host) => ({ ...host, addresses: host.addresses.filter(fits) }))
    .filter(({ addresses }) => addresses.length > 0);
}

/** Returns the key and options of a destination that is reached from one of our addresses. */
export function ownEnd(
  { ip, name }: Egress,
  key: string,
  ehloName: string,
): Pick<Destination, "key" | "localAddress" | "ehloName"> {
  return { key: `${key} from ${ip}`, localAddress: ip, ehloName: name ?? ehloName };
}
