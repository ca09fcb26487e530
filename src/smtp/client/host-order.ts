import type { Clock } from "../../core/clock.ts";
import { setNewest } from "../../core/newest.ts";
import type { Connecting, Connection } from "./connection.ts";
import type { Destination, PeerResult } from "./delivery.ts";

/** Time for which an address that failed is tried behind all others. */
export const SHUN_MS = 60_000;
/** Addresses tried for one connection: each may cost the whole connect timeout. */
export const MAX_ADDRESSES_TRIED = 8;
/** Failed addresses remembered over all destinations; the oldest goes first. */
const MAX_SHUNNED = 10_000;

export interface Candidate {
  host: string;
  ip: string;
}

/** What came of trying the hosts; `tried`: the address that failed so, null where none was tried. */
export type Connected =
  | { kind: "open"; connection: Connection }
  | { kind: "failed"; result: PeerResult; tried: Candidate | null };

/**
 * The addresses to try in order, those that failed of late behind all others. Each host has its share of the tries:
 * else a first host with many dead addresses would keep all others from ever being tried.
 */
export function candidates(
  destination: Destination,
  shunned: ReadonlyMap<string, number>,
  now: number,
): Candidate[] {
  const all = destination.hosts.flatMap(({ name, addresses }) => addresses.map((ip) => ({ host: name, ip })));
  const failed = (candidate: Candidate): boolean => isShunned(shunned, candidate, destination.port, now);
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
 * Opens a connection to the first address that takes one (RFC 5321 §5.1). Of several failures the mildest counts: a
 * host that could not be reached may take the message later, though another one has refused us for good.
 * @param until time from which no further address is tried
 */
export async function connectInOrder(
  clock: Clock,
  shunned: Map<string, number>,
  destination: Destination,
  until: number,
  connect: (host: string, ip: string) => Promise<Connecting>,
): Promise<Connected> {
  let failure: Connected & { kind: "failed" } = {
    kind: "failed",
    result: { kind: "trouble", stage: "connect", reason: "no address to connect to" },
    tried: null,
  };
  for (const candidate of candidates(destination, shunned, clock.now())) {
    if (failure.tried !== null && clock.now() >= until) break;
    const connecting = await connect(candidate.host, candidate.ip);
    const address = shunKey(candidate, destination.port);
    if (connecting.kind === "open") {
      shunned.delete(address);
      return connecting;
    }
    setNewest(shunned, address, clock.now() + SHUN_MS, MAX_SHUNNED);
    if (failure.tried === null || !isPermanent(connecting.result))
      failure = { kind: "failed", result: connecting.result, tried: candidate };
  }
  return failure;
}

/** Whether an address has failed of late. */
export function isShunned(
  shunned: ReadonlyMap<string, number>,
  candidate: Candidate,
  port: number,
  now: number,
): boolean {
  const until = shunned.get(shunKey(candidate, port)) ?? 0;
  // A clock that was put back does not lengthen it.
  return until > now && until <= now + SHUN_MS;
}

/** With the host's name: whoever lets a name of theirs lead to another's address must not change the order of its hosts. */
function shunKey({ host, ip }: Candidate, port: number): string {
  return `${host} ${ip}:${port}`;
}

function isPermanent(result: PeerResult): boolean {
  return result.kind === "reply" && result.code >= 500;
}
