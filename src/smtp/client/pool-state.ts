import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../log.ts";
import type { Connection } from "./connection.ts";
import type { DeliveryReport, Destination, OutboundMail, SendResult, Timeouts } from "./delivery.ts";
import type { Candidate } from "./host-order.ts";
import type { WireDeps } from "./line.ts";

export interface PoolOptions {
  maxConnectionsPerDestination: number;
  maxMessagesPerConnection?: number;
  idleMs?: number;
  timeouts?: Partial<Timeouts>;
}

export interface PoolDeps extends WireDeps {
  clock: Clock;
  log: Log;
}

/** A delivery that is not answered yet. */
export interface Request {
  mail: OutboundMail;
  transcript: string[];
  startedAt: number;
  resends: number;
  member: Member | null;
  /** Nobody waits for its outcome any more. */
  aborted: boolean;
  answered: boolean;
  resolve: (report: DeliveryReport) => void;
}

/** A connection in the pool. */
export interface Member {
  connection: Connection;
  /** Lines of its opening, for the transcript of its first message. */
  opening: string[];
  sent: number;
  /** Messages given to it whose outcome is not known. */
  underway: number;
  /** How many of those are aborted. */
  aborted: number;
  /** Whether it can take a message now. */
  ready: boolean;
  idleSince: number;
  idleTimer: boolean;
}

/** Everything of one destination. */
export interface Lane {
  destination: Destination;
  waiting: Request[];
  members: Set<Member>;
  opening: number;
  /** Messages given to connections whose outcome is not known; some of those connections may be gone already. */
  underway: number;
  /** No new connection before this time while others stand or are being opened. */
  backOffUntil: number;
}

/** A pool as its parts see it. */
export interface State {
  deps: PoolDeps;
  options: Required<PoolOptions> & { timeouts: Timeouts };
  lanes: Map<string, Lane>;
  /** Addresses that failed, with the time until which they are tried last. */
  shunned: Map<string, number>;
  closing: boolean;
  underway: Set<Promise<unknown>>;
}

/** The outcome of a delivery that never got to a peer. */
export function notTried(reason: string): SendResult {
  return { kind: "trouble", stage: "connect", reason };
}

/** Answers a delivery. `tried` is the address last tried where no connection came about. */
export function settle(
  state: State,
  request: Request,
  result: SendResult,
  tried: Candidate | null = null,
): void {
  request.answered = true;
  const connection = request.member?.connection ?? null;
  request.resolve({
    result,
    mx: connection?.host ?? tried?.host ?? null,
    ip: connection?.ip ?? tried?.ip ?? null,
    tls: connection?.tls?.name ?? null,
    tlsVerified: connection?.tls?.fault === null,
    transcript: request.transcript,
    startedAt: request.startedAt,
    durationMs: state.deps.clock.now() - request.startedAt,
  });
}
