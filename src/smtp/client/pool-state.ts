import type { Clock } from "../../core/time/clock.ts";
import type { Log } from "../../log.ts";
import type { Connection, openConnection } from "./connection.ts";
import {
  type DeliveryReport,
  note,
  type Destination,
  type OutboundMail,
  type PeerResult,
  type SendResult,
  type Stage,
  type Timeouts,
} from "./delivery.ts";
import type { Candidate } from "./host-order.ts";
import type { TransportDeps } from "./transport-queue.ts";

export interface PoolOptions {
  maxConnectionsPerDestination: number;
  maxMessagesPerConnection?: number;
  idleMs?: number;
  /** Idle connections kept, over all destinations. */
  maxIdle?: number;
  timeouts?: Partial<Timeouts>;
}

export interface PoolDeps extends TransportDeps {
  clock: Clock;
  log: Log;
  /** Opens a connection. If undefined, over TCP. */
  connect?: typeof openConnection;
}

/** A delivery that is not resolved yet. */
export interface PendingDelivery {
  mail: OutboundMail;
  /** The queue it waits or is sent in; null before. */
  queue: DeliveryQueue | null;
  /** Hosts that deferred it, and the last one's result; null if there is none. */
  triedHosts: string[];
  deferral: { result: SendResult; connection: Connection } | null;
  transcript: string[];
  startedAt: number;
  /** The start in `Clock.elapsed`. */
  since: number;
  resends: number;
  member: Member | null;
  /** True if the caller no longer waits for the result. */
  aborted: boolean;
  answered: boolean;
  resolve: (report: DeliveryReport) => void;
}

/** A connection in the pool. */
export interface Member {
  connection: Connection;
  /** Transcript lines of its opening, for its first message. */
  opening: string[];
  sent: number;
  /** Messages assigned to it without a result. */
  underway: number;
  /** Number of those that are aborted. */
  aborted: number;
  /** True if it can take a message now. */
  ready: boolean;
  idleSince: number;
  idleTimer: boolean;
  /** Cancels the wait for the verdict on aborted messages; null if there is none. */
  cancelVerdictWait: (() => void) | null;
}

/** Messages and connections of one destination, or for some of its hosts, which the others deferred. */
export interface DeliveryQueue {
  /** Key among the queues of the pool. */
  key: string;
  destination: Destination;
  /** The queues that share its limits, itself among them. */
  lane: Set<DeliveryQueue>;
  waiting: PendingDelivery[];
  members: Set<Member>;
  opening: number;
  /** Messages assigned to connections without a result. Some of those connections may have closed. */
  underway: number;
  /** Cancels the pause without new connections; null if there is none. */
  cancelBackOff: (() => void) | null;
  /** All hosts of the destination; `destination` may have fewer. */
  whole: Destination;
}

/** State of a pool, shared by its files. */
export interface PoolState {
  deps: PoolDeps;
  options: Required<PoolOptions> & { timeouts: Timeouts };
  queues: Map<string, DeliveryQueue>;
  /** Queues that share limits, by the key of those. */
  lanes: Map<string, Set<DeliveryQueue>>;
  /** Addresses that failed, with the time until which they are tried last. */
  shunned: Map<string, number>;
  /** Idle connections, the one idle for longest first. */
  idle: Map<Member, DeliveryQueue>;
  closing: boolean;
  underway: Set<Promise<unknown>>;
}

/** Creates the result of a delivery that never reached a peer. */
export function notTried(reason: string): PeerResult {
  return { kind: "trouble", stage: "connect", reason };
}

/**
 * Returns the queue of a destination, or for some of its hosts; a new one if there is none.
 * @param whole the destination with all of its hosts
 */
export function queueOf(state: PoolState, whole: Destination, destination = whole): DeliveryQueue {
  const names = destination === whole ? "" : destination.hosts.map(({ name }) => name).join(" ");
  const key = `${whole.key} ${names}`;
  const known = state.queues.get(key);
  if (known !== undefined) {
    // The newest destination has the current addresses. A busy queue may exist for days.
    Object.assign(known, { destination, whole });
    return known;
  }
  const lane = state.lanes.get(laneKey(whole)) ?? new Set();
  const empty = { waiting: [], members: new Set<Member>(), opening: 0, underway: 0, cancelBackOff: null };
  const queue: DeliveryQueue = { key, destination, whole, lane, ...empty };
  state.lanes.set(laneKey(whole), lane.add(queue));
  state.queues.set(key, queue);
  return queue;
}

/** Returns the queues that share the limits of a destination. */
export function laneOf(state: PoolState, destination: Destination): Iterable<DeliveryQueue> {
  return state.lanes.get(laneKey(destination)) ?? [];
}

function laneKey({ key, limits }: Destination): string {
  return limits === undefined ? `one ${key}` : `lane ${limits.key}`;
}

/** Forgets a queue without messages and connections. */
export function forgetEmpty(state: PoolState, queue: DeliveryQueue): void {
  const { members, opening, underway, waiting, key, lane, whole } = queue;
  if (members.size + opening + underway + waiting.length > 0) return;
  // The last connection of an old queue may close after its destination has a new queue.
  if (state.queues.get(key) === queue) state.queues.delete(key);
  lane.delete(queue);
  if (lane.size === 0 && state.lanes.get(laneKey(whole)) === lane) state.lanes.delete(laneKey(whole));
}

/** Returns the maximum number of connections of a queue and those that share its limits. */
export function maxConnections(state: PoolState, { whole }: DeliveryQueue): number {
  return whole.limits?.connections() ?? state.options.maxConnectionsPerDestination;
}

/** Returns the maximum number of messages on a connection of a queue. */
export function maxMessages(state: PoolState, { whole }: DeliveryQueue): number {
  return whole.limits?.messagesPerConnection ?? state.options.maxMessagesPerConnection;
}

const SESSION_STAGES: ReadonlySet<Stage> = new Set<Stage>(["mail", "rcpt", "data", "final"]);

/**
 * Returns true if a host or the owner decided about the message itself. If another host deferred the message before,
 * failing to reach this one is no decision.
 */
function isDecision(result: SendResult): boolean {
  if (result.kind === "withdrawn") return true;
  return result.kind === "reply" && SESSION_STAGES.has(result.stage);
}

/**
 * Resolves a delivery.
 * @param tried the address last tried, if no connection was opened
 */
export function settle(
  state: PoolState,
  request: PendingDelivery,
  result: SendResult,
  tried: Candidate | null = null,
): void {
  request.answered = true;
  const { deferral } = request;
  const decided =
    deferral === null || isDecision(result)
      ? { result, connection: request.member?.connection ?? null }
      : deferral;
  const { connection } = decided;
  request.resolve({
    result: decided.result,
    mx: connection?.host ?? tried?.host ?? null,
    ip: connection?.ip ?? tried?.ip ?? null,
    tls: connection?.tls?.name ?? null,
    tlsVerified: connection?.tls?.fault === null,
    transcript: request.transcript,
    startedAt: request.startedAt,
    durationMs: state.deps.clock.elapsed() - request.since,
  });
}

/**
 * Time to wait for the verdict on an abandoned message that the peer has whole. Most peers that scan a message are done
 * by then. If the connection closes before, the message is tried again, though the peer may have it (RFC 5321
 * §4.5.3.2.6). The wait restarts with the next message on the connection.
 */
export const VERDICT_WAIT_MS = 120_000;

/** Closes a connection that carries only abandoned messages. Call it whenever that may have changed. */
export function closeAbandoned(state: PoolState, member: Member): void {
  member.cancelVerdictWait?.();
  member.cancelVerdictWait = null;
  if (member.underway === 0 || member.aborted < member.underway) return;
  const end = (): void => member.connection.close("aborted");
  if (member.connection.awaitsVerdict())
    member.cancelVerdictWait = state.deps.clock.after(VERDICT_WAIT_MS, end);
  else end();
}

/** Fails all waiting messages at once if no connection can be opened, so that each need not try for itself. */
export function failWaiting(
  state: PoolState,
  queue: DeliveryQueue,
  result: SendResult,
  transcript: readonly string[],
  tried: Candidate | null,
): void {
  for (const request of queue.waiting.splice(0)) {
    note(request.transcript, ...transcript);
    settle(state, request, result, tried);
  }
}
