import { setBounded } from "../../core/collections.ts";
import type { Clock } from "../../core/time/clock.ts";
import { MINUTE_MS } from "../../core/time/units.ts";
import { networkOf } from "../../core/networks.ts";

/** Failed logins from one network within `FAILURE_WINDOW_MS`, after which it is turned away. */
export const MAX_FAILED_LOGINS = 20;
/** Time for which a failed login counts. */
export const FAILURE_WINDOW_MS = MINUTE_MS;
/** Maximum number of networks remembered. Beyond them, the one that is known longest is forgotten. */
const MAX_NETWORKS = 10_000;

/** Counts failed logins by network, against programs that guess keys. */
export interface FailedLogins {
  /** Returns whether the address is turned away now. */
  blocks(ip: string): boolean;
  count(ip: string): void;
}

/** Counts by IPv4 address or IPv6 /64. Loopback counts too, because any program of the machine may guess. */
export function createFailedLogins(clock: Clock): FailedLogins {
  const times = new Map<string, number[]>();
  const recent = (ip: string): number[] => {
    const since = clock.elapsed() - FAILURE_WINDOW_MS;
    return (times.get(networkOf(ip)) ?? []).filter((at) => at > since);
  };
  return {
    blocks: (ip) => recent(ip).length >= MAX_FAILED_LOGINS,
    count: (ip) => setBounded(times, networkOf(ip), [...recent(ip), clock.elapsed()], MAX_NETWORKS),
  };
}
