import {
  DEFAULT_TIMEOUTS,
  type DeliveryReport,
  type Destination,
  type OutboundMail,
  type SendResult,
  SHUTTING_DOWN,
} from "./delivery.ts";
import {
  closeAbandoned,
  failWaiting,
  laneOf,
  notTried,
  queueOf,
  type PoolDeps,
  type PoolOptions,
  type PendingDelivery,
  type PoolState,
  settle,
} from "./pool-state.ts";
import { dispatch, dispatchLane, retire } from "./pool-dispatch.ts";

/**
 * Maximum number of messages on one connection, which is then replaced. Peers limit this, and a peer's memory must not
 * grow for ever.
 */
const MAX_MESSAGES_PER_CONNECTION = 500;
/** Time an idle connection is kept. */
export const IDLE_MS = 10_000;
/** Maximum number of idle connections kept. A mailing to thousands of hosts must not hold a socket for each of them. */
export const MAX_IDLE = 2000;
/** Maximum number of deliveries that wait for one destination. Further ones fail with a temporary error. */
export const MAX_WAITING_PER_DESTINATION = 10_000;

export interface Pool {
  /** Open connections. */
  readonly connections: number;
  /** Queues that are not empty. */
  readonly queues: number;
  /**
   * Delivers one message over a kept or new connection. Never rejects. If `signal` aborts, the delivery ends in
   * trouble. If it shares the connection, that happens when the other messages are done or aborted too.
   */
  deliver(destination: Destination, mail: OutboundMail, signal?: AbortSignal): Promise<DeliveryReport>;
  /** Accepts no more, fails waiting messages, gives current ones `graceMs`, then closes all connections. */
  close(graceMs: number): Promise<void>;
}

/** Keeps connections to each destination and assigns messages to them in order. */
export function createPool(deps: PoolDeps, options: PoolOptions): Pool {
  const state: PoolState = {
    deps,
    options: {
      maxMessagesPerConnection: MAX_MESSAGES_PER_CONNECTION,
      idleMs: IDLE_MS,
      maxIdle: MAX_IDLE,
      ...options,
      timeouts: { ...DEFAULT_TIMEOUTS, ...options.timeouts },
    },
    queues: new Map(),
    lanes: new Map(),
    shunned: new Map(),
    idle: new Map(),
    closing: false,
    underway: new Set(),
  };
  return {
    get connections() {
      return state.queues.values().reduce((sum, queue) => sum + queue.members.size, 0);
    },
    get queues() {
      return state.queues.size;
    },
    deliver(destination, mail, signal) {
      const delivered = deliver(state, destination, mail, signal);
      state.underway.add(delivered);
      return delivered.finally(() => state.underway.delete(delivered));
    },
    close: (graceMs) => close(state, graceMs),
  };
}

function deliver(
  state: PoolState,
  destination: Destination,
  mail: OutboundMail,
  signal: AbortSignal | undefined,
): Promise<DeliveryReport> {
  const { promise, resolve } = Promise.withResolvers<DeliveryReport>();
  const request: PendingDelivery = {
    mail,
    queue: null,
    triedHosts: [],
    deferral: null,
    transcript: [],
    startedAt: state.deps.clock.now(),
    since: state.deps.clock.elapsed(),
    resends: 0,
    member: null,
    aborted: false,
    answered: false,
    resolve,
  };
  const refusal = refusalOf(state, destination, signal);
  if (refusal !== null) {
    settle(state, request, refusal);
    return promise;
  }
  const queue = queueOf(state, destination);
  const abort = (): void => abandon(state, request);
  signal?.addEventListener("abort", abort, { once: true });
  request.queue = queue;
  queue.waiting.push(request);
  dispatch(state, queue);
  return signal === undefined ? promise : promise.finally(() => signal.removeEventListener("abort", abort));
}

function refusalOf(
  state: PoolState,
  destination: Destination,
  signal: AbortSignal | undefined,
): SendResult | null {
  if (state.closing) return notTried(SHUTTING_DOWN);
  if (signal?.aborted) return notTried("aborted");
  let count = 0;
  for (const { waiting } of laneOf(state, destination)) count += waiting.length;
  return count >= MAX_WAITING_PER_DESTINATION ? notTried("too many deliveries wait") : null;
}

function abandon(state: PoolState, request: PendingDelivery): void {
  if (request.answered || request.aborted) return;
  request.aborted = true;
  const waiting = request.queue?.waiting ?? [];
  const at = waiting.indexOf(request);
  if (at >= 0) {
    waiting.splice(at, 1);
    settle(state, request, notTried("aborted"));
    // It may have held up messages of other queues.
    if (request.queue !== null) dispatchLane(state, request.queue);
  } else if (request.member !== null) {
    request.member.aborted++;
    closeAbandoned(state, request.member);
  }
}

async function close(state: PoolState, graceMs: number): Promise<void> {
  state.closing = true;
  for (const queue of [...state.queues.values()]) {
    failWaiting(state, queue, notTried(SHUTTING_DOWN), [], null);
    for (const member of [...queue.members]) if (member.underway === 0) retire(state, queue, member);
    dispatch(state, queue);
  }
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const cancel = state.deps.clock.after(graceMs, resolve);
  await Promise.race([drained(state), late]);
  cancel();
  for (const queue of [...state.queues.values()])
    for (const member of [...queue.members]) member.connection.close(SHUTTING_DOWN);
}

/** Deliveries that end within the grace send QUIT; wait for that too. */
async function drained({ underway }: PoolState): Promise<void> {
  while (underway.size > 0) await Promise.allSettled(underway);
}
