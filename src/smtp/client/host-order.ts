import type { Clock } from "../../core/time/clock.ts";
import { setBounded } from "../../core/collections.ts";
import type { ConnectResult, Connection } from "./connection.ts";
import type { Destination, PeerResult } from "./delivery.ts";

/** After a failure, an address is tried after all others for this time. */
export const SHUN_MS = 60_000;
/** Addresses tried for one connection. Each may take the whole connect timeout. */
export const MAX_ADDRESSES_TRIED = 8;
/** Failed addresses remembered, over all destinations. If it is full, the oldest is dropped. */
const MAX_SHUNNED = 10_000;

export interface Candidate {
  host: string;
  ip: string;
}

/** Result of connecting to the hosts. `tried` is the address of the shown failure, or null if none was tried. */
export type ConnectOutcome =
  | { kind: "open"; connection: Connection }
  | { kind: "failed"; result: PeerResult; tried: Candidate | null };

/**
 * Returns the addresses to try, in order; recently failed ones come last. Each host has a share of the attempts, so
 * that a first host with many dead addresses does not use them all.
 */
export function candidates(
  destination: Destination,
  shunned: ReadonlyMap<string, number>,
  now: number,
): Candidate[] {
  const all = destination.hosts.flatMap(({ name, addresses }) => addresses.map((ip) => ({ host: name, ip })));
  const failed = (candidate: Candidate): boolean => isShunned(shunned, candidate, destination, now);
  const ordered = [...all.filter((candidate) => !failed(candidate)), ...all.filter(failed)];
  const share = Math.max(1, Math.floor(MAX_ADDRESSES_TRIED / destination.hosts.length));
  const taken = new Map<string, number>();
  const shares = ordered.filter(({ host }) => {
    const nth = (taken.get(host) ?? 0) + 1;
    taken.set(host, nth);
    return nth <= share;
  });
  const chosen = new Set([...new Set([...shares, ...ordered])].slice(0, MAX_ADDRESSES_TRIED));
  return ordered.filter((candidate) => chosen.has(candidate));
}

/**
 * Opens a connection to the first address that takes one (RFC 5321 §5.1). If all fail, returns the most telling failure.
 * @param until time from which no further address is tried
 */
export async function connectInOrder(
  clock: Clock,
  shunned: Map<string, number>,
  destination: Destination,
  until: number,
  connect: (host: string, ip: string) => Promise<ConnectResult>,
): Promise<ConnectOutcome> {
  let failure: ConnectOutcome & { kind: "failed" } = {
    kind: "failed",
    result: { kind: "trouble", stage: "connect", reason: "no address to connect to" },
    tried: null,
  };
  for (const candidate of candidates(destination, shunned, clock.elapsed())) {
    if (failure.tried !== null && clock.elapsed() >= until) break;
    const connecting = await connect(candidate.host, candidate.ip);
    const address = shunKey(candidate, destination);
    if (connecting.kind === "open") {
      shunned.delete(address);
      return connecting;
    }
    if (destination.limits?.mayAskNextHost(connecting.result) === false)
      return { kind: "failed", result: connecting.result, tried: candidate };
    setBounded(shunned, address, clock.elapsed() + SHUN_MS, MAX_SHUNNED);
    if (
      failure.tried === null ||
      failureRank(connecting.result) >= Math.max(failureRank(failure.result), TEMPORARY)
    )
      failure = { kind: "failed", result: connecting.result, tried: candidate };
  }
  return failure;
}

/** Checks whether an address has failed recently. */
export function isShunned(
  shunned: ReadonlyMap<string, number>,
  candidate: Candidate,
  way: Pick<Destination, "port" | "localAddress">,
  now: number,
): boolean {
  return (shunned.get(shunKey(candidate, way)) ?? now) > now;
}

/**
 * Includes the host's name, so that a domain pointing to another's address does not change that one's order. Includes
 * our own address, because that may be what fails.
 */
function shunKey(
  { host, ip }: Candidate,
  { port, localAddress }: Pick<Destination, "port" | "localAddress">,
): string {
  return `${host} ${ip}:${port}${localAddress === undefined ? "" : ` from ${localAddress}`}`;
}

const PERMANENT = 0;
const TEMPORARY = 1;

/**
 * Ranks failures by what they tell the operator: a refused login, then TLS, then any other temporary failure. A permanent
 * refusal ranks last, because an address that could not be reached may still accept the message later.
 */
function failureRank(result: PeerResult): number {
  if (result.kind === "reply" && result.code >= 500) return PERMANENT;
  if (result.stage === "auth") return 3;
  return result.stage === "starttls" ? 2 : TEMPORARY;
}
