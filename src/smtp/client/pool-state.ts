import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../log.ts";
import type { Connection, openConnection } from "./connection.ts";
import type {
  DeliveryReport,
  Destination,
  OutboundMail,
  PeerResult,
  SendResult,
  Stage,
  Timeouts,
} from "./delivery.ts";
import type { Candidate } from "./host-order.ts";
import type { WireDeps } from "./line.ts";

export interface PoolOptions {
  maxConnectionsPerDestination: number;
  maxMessagesPerConnection?: number;
  idleMs?: number;
  /** Unused connections kept, of all destinations. */
  maxIdle?: number;
  timeouts?: Partial<Timeouts>;
}

export interface PoolDeps extends WireDeps {
  clock: Clock;
  log: Log;
  /** Opens a connection; another one than that over TCP, where it is given. */
  connect?: typeof openConnection;
}

/** A delivery that is not answered yet. */
export interface Request {
  mail: OutboundMail;
  /** Where it waits or is under way; null before. */
  lane: Lane | null;
  /** Hosts that have put it off, and what the last of them said; null where none has. */
  asked: string[];
  putOff: { result: SendResult; connection: Connection } | null;
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
  /** Ends the wait for the verdict on what is aborted; null where none is waited for. */
  cancelPatience: (() => void) | null;
}

/** Everything of one destination. */
export interface Lane {
  destination: Destination;
  waiting: Request[];
  members: Set<Member>;
  opening: number;
  /** Messages given to connections whose outcome is not known; some of those connections may be gone already. */
  underway: number;
  /** Ends the time without new connections while others stand or are being opened; null outside of it. */
  cancelBackOff: (() => void) | null;
  /** The lane of all hosts of the destination, of which this is a branch; null for that lane itself. */
  root: Lane | null;
  /** Lanes to some of its hosts alone, by their names, for what the others have put off. */
  branches: Map<string, Lane>;
}

/** A pool as its parts see it. */
export interface State {
  deps: PoolDeps;
  options: Required<PoolOptions> & { timeouts: Timeouts };
  lanes: Map<string, Lane>;
  /** Addresses that failed, with the time until which they are tried last. */
  shunned: Map<string, number>;
  /** Connections that nothing is under way on, the one unused for longest first. */
  idle: Map<Member, Lane>;
  closing: boolean;
  underway: Set<Promise<unknown>>;
}

/** The outcome of a delivery that never got to a peer. */
export function notTried(reason: string): PeerResult {
  return { kind: "trouble", stage: "connect", reason };
}

/** A lane without anything in it. */
export function newLane(destination: Destination, root: Lane | null): Lane {
  return {
    destination,
    waiting: [],
    members: new Set(),
    opening: 0,
    underway: 0,
    cancelBackOff: null,
    root,
    branches: new Map(),
  };
}

/** The lane of all hosts of a destination, and those of some of them. They share the limit of connections. */
export function family(lane: Lane): Lane[] {
  const root = lane.root ?? lane;
  return [root, ...root.branches.values()];
}

/** Every lane there is. */
export function allLanes(state: State): Lane[] {
  return [...state.lanes.values()].flatMap(family);
}

const SESSION_STAGES: ReadonlySet<Stage> = new Set<Stage>(["mail", "rcpt", "data", "final"]);

/**
 * Whether a host has decided on the message itself, or its owner has. A host that could not be asked decides nothing, where
 * another before it has put the message off.
 */
function isDecision(result: SendResult): boolean {
  if (result.kind === "withdrawn") return true;
  return result.kind === "reply" && SESSION_STAGES.has(result.stage);
}

/** Answers a delivery. `tried` is the address last tried where no connection came about. */
export function settle(
  state: State,
  request: Request,
  result: SendResult,
  tried: Candidate | null = null,
): void {
  request.answered = true;
  const { putOff } = request;
  const decided =
    putOff === null || isDecision(result)
      ? { result, connection: request.member?.connection ?? null }
      : putOff;
  const { connection } = decided;
  request.resolve({
    result: decided.result,
    mx: connection?.host ?? tried?.host ?? null,
    ip: connection?.ip ?? tried?.ip ?? null,
    tls: connection?.tls?.name ?? null,
    tlsVerified: connection?.tls?.fault === null,
    transcript: request.transcript,
    startedAt: request.startedAt,
    durationMs: state.deps.clock.now() - request.startedAt,
  });
}
