import {
  DEFAULT_TIMEOUTS,
  type DeliveryReport,
  type Destination,
  type OutboundMail,
  type SendResult,
  SHUTTING_DOWN,
} from "./delivery.ts";
import { cutAbandoned } from "./pool-abandoned.ts";
import { dispatch, dispatchFamily, failWaiting, retire } from "./pool-dispatch.ts";
import {
  allLanes,
  family,
  type Lane,
  newLane,
  notTried,
  type PoolDeps,
  type PoolOptions,
  type Request,
  type State,
  settle,
} from "./pool-state.ts";

/** Messages on one connection, after which it is replaced: peers count them, and memory of a peer must not grow for ever. */
const MAX_MESSAGES_PER_CONNECTION = 500;
/** Time an unused connection is kept. */
export const IDLE_MS = 10_000;
/** Unused connections kept: a mailing to thousands of hosts must not hold a file for each of them. */
export const MAX_IDLE = 2000;
/** Deliveries that wait for a connection of one destination; one more is told to come again. */
export const MAX_WAITING_PER_DESTINATION = 10_000;

export interface Pool {
  /** Connections that stand. */
  readonly connections: number;
  /** Lanes to destinations, and to some of their hosts, that have something in them. */
  readonly lanes: number;
  /**
   * Delivers one message over a kept or a new connection. Never rejects. An aborted `signal` ends the delivery in
   * trouble; where it shares its connection with others, as soon as those are through or aborted too.
   */
  deliver(destination: Destination, mail: OutboundMail, signal?: AbortSignal): Promise<DeliveryReport>;
  /** Takes no more, answers what waits with trouble, gives what is under way `graceMs`, then closes all connections. */
  close(graceMs: number): Promise<void>;
}

/** Keeps connections to each destination and hands messages to them in the order they come. */
export function createPool(deps: PoolDeps, options: PoolOptions): Pool {
  const state: State = {
    deps,
    options: {
      maxMessagesPerConnection: MAX_MESSAGES_PER_CONNECTION,
      idleMs: IDLE_MS,
      maxIdle: MAX_IDLE,
      ...options,
      timeouts: { ...DEFAULT_TIMEOUTS, ...options.timeouts },
    },
    lanes: new Map(),
    shunned: new Map(),
    idle: new Map(),
    closing: false,
    underway: new Set(),
  };
  return {
    get connections() {
      return allLanes(state).reduce((sum, lane) => sum + lane.members.size, 0);
    },
    get lanes() {
      return allLanes(state).length;
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
  state: State,
  destination: Destination,
  mail: OutboundMail,
  signal: AbortSignal | undefined,
): Promise<DeliveryReport> {
  const { promise, resolve } = Promise.withResolvers<DeliveryReport>();
  const startedAt = state.deps.clock.now();
  const request: Request = {
    mail,
    lane: null,
    asked: [],
    putOff: null,
    transcript: [],
    startedAt,
    resends: 0,
    member: null,
    aborted: false,
    answered: false,
    resolve,
  };
  const refusal = refusalOf(state, destination.key, signal);
  if (refusal !== null) {
    settle(state, request, refusal);
    return promise;
  }
  const lane = laneOf(state, destination);
  const abort = (): void => abandon(state, request);
  signal?.addEventListener("abort", abort, { once: true });
  request.lane = lane;
  lane.waiting.push(request);
  dispatch(state, lane);
  return signal === undefined ? promise : promise.finally(() => signal.removeEventListener("abort", abort));
}

function refusalOf(state: State, key: string, signal: AbortSignal | undefined): SendResult | null {
  if (state.closing) return notTried(SHUTTING_DOWN);
  if (signal?.aborted) return notTried("aborted");
  const lane = state.lanes.get(key);
  const waiting = lane === undefined ? 0 : family(lane).reduce((sum, { waiting }) => sum + waiting.length, 0);
  if (waiting >= MAX_WAITING_PER_DESTINATION) return notTried("too many deliveries wait");
  return null;
}

function laneOf(state: State, destination: Destination): Lane {
  const { key } = destination;
  const known = state.lanes.get(key);
  if (known !== undefined) {
    // The newest says where the hosts are by now: a busy destination may stand for days.
    known.destination = destination;
    return known;
  }
  const lane = newLane(destination, null);
  state.lanes.set(key, lane);
  return lane;
}

function abandon(state: State, request: Request): void {
  if (request.answered || request.aborted) return;
  request.aborted = true;
  const waiting = request.lane?.waiting ?? [];
  const at = waiting.indexOf(request);
  if (at >= 0) {
    waiting.splice(at, 1);
    settle(state, request, notTried("aborted"));
    // Others may have made way for it.
    if (request.lane !== null) dispatchFamily(state, request.lane);
  } else if (request.member !== null) {
    request.member.aborted++;
    cutAbandoned(state, request.member);
  }
}

async function close(state: State, graceMs: number): Promise<void> {
  state.closing = true;
  for (const lane of allLanes(state)) {
    failWaiting(state, lane, notTried(SHUTTING_DOWN), [], null);
    for (const member of [...lane.members]) if (member.underway === 0) retire(state, lane, member);
    dispatch(state, lane);
  }
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const cancel = state.deps.clock.after(graceMs, resolve);
  await Promise.race([drained(state), late]);
  cancel();
  for (const lane of allLanes(state)) for (const member of lane.members) member.connection.cut(SHUTTING_DOWN);
}

/** What ends within the grace says QUIT then, which is waited for too. */
async function drained({ underway }: State): Promise<void> {
  while (underway.size > 0) await Promise.allSettled(underway);
}
