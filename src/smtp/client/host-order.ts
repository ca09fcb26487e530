import type { Clock } from "../../core/clock.ts";
import type { Connecting, Connection } from "./connection.ts";
import type { Destination, SendResult } from "./delivery.ts";

/** Time for which an address that failed is tried behind all others. */
export const SHUN_MS = 60_000;
/** Addresses tried for one connection: each may cost the whole connect timeout. */
export const MAX_ADDRESSES_TRIED = 8;
/** Failed addresses remembered over all destinations; the oldest goes first. */
export const MAX_SHUNNED = 10_000;

export interface Candidate {
  host: string;
  ip: string;
}

export type Connected =
  | { kind: "open"; connection: Connection }
  | { kind: "failed"; result: SendResult; tried: Candidate | null };

/** The addresses to try in order, those that failed of late behind all others. */
export function candidates(
  destination: Destination,
  shunned: ReadonlyMap<string, number>,
  now: number,
): Candidate[] {
  const all = destination.hosts.flatMap(({ name, addresses }) => addresses.map((ip) => ({ host: name, ip })));
  const isShunned = ({ ip }: Candidate): boolean => (shunned.get(`${ip}:${destination.port}`) ?? 0) > now;
  const ordered = [...all.filter((candidate) => !isShunned(candidate)), ...all.filter(isShunned)];
  return ordered.slice(0, MAX_ADDRESSES_TRIED);
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
    const address = `${candidate.ip}:${destination.port}`;
    if (connecting.kind === "open") {
      shunned.delete(address);
      return connecting;
    }
    shun(shunned, address, clock.now() + SHUN_MS);
    if (failure.tried === null || !isPermanent(connecting.result))
      failure = { kind: "failed", result: connecting.result, tried: candidate };
  }
  return failure;
}

function isPermanent(result: SendResult): boolean {
  return result.kind === "reply" && result.code >= 500;
}

function shun(shunned: Map<string, number>, address: string, until: number): void {
  shunned.delete(address);
  shunned.set(address, until);
  const [oldest] = shunned.keys();
  if (shunned.size > MAX_SHUNNED && oldest !== undefined) shunned.delete(oldest);
}
