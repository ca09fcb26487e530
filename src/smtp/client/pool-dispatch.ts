import { type Connection, openConnection } from "./connection.ts";
import { type SendResult, SHUTTING_DOWN, note } from "./delivery.ts";
import { type ConnectOutcome, connectInOrder } from "./host-order.ts";
import {
  connectionsOf,
  isOtherQueueStarved,
  queueForNextHost,
  spareConnection,
  idleUsedMember,
  readyMember,
} from "./next-host.ts";
import {
  closeAbandoned,
  failWaiting,
  forgetEmpty,
  type DeliveryQueue,
  maxConnections,
  maxMessages,
  type Member,
  notTried,
  type PendingDelivery,
  type PoolState,
  settle,
} from "./pool-state.ts";
import { wasClosedBefore } from "./transaction.ts";

/** Maximum number of times a message moves to another connection because a kept one was closed before MAIL. */
export const MAX_RESENDS = 3;
/** If a connection attempt fails while other connections exist, no new one is tried for this time. */
export const BACK_OFF_MS = 10_000;
/** Time limit of one message on a connection, against peers that read octet by octet (a tarpit). */
export const MAX_TRANSACTION_MS = 30 * 60_000;
/** Time after which no further address is tried for one connection. Otherwise peers that hang would use it all. */
export const MAX_TRYING_MS = 12 * 60_000;

/** Assigns waiting messages: to an idle connection, else to a new one, else to one that is sending another message. */
export function dispatch(state: PoolState, queue: DeliveryQueue): void {
  while (queue.waiting.length > 0) {
    if (mustYield(state, queue)) {
      const used = idleUsedMember(queue);
      if (used === undefined) break;
      retire(state, queue, used);
      continue;
    }
    const member =
      readyMember(queue, 0) ?? (mayOpen(state, queue) ? null : readyMember(queue, maxUnderway(queue)));
    if (member === undefined) break;
    if (member === null) void open(state, queue);
    else assign(state, queue, member);
  }
  forgetEmpty(state, queue);
}

/** Returns true if a queue without connection waits for one of this queue's, because the limit is reached. */
function mustYield(state: PoolState, queue: DeliveryQueue): boolean {
  return (
    queue.members.size > 0 &&
    queue.opening === 0 &&
    isOtherQueueStarved(queue) &&
    [...queue.members].every(({ sent }) => sent > 0) &&
    connectionsOf(queue) >= maxConnections(state, queue)
  );
}

/**
 * Dispatches all queues that share a limit; this one comes last, so that it does not take back at once what it gave up.
 */
export function dispatchLane(state: PoolState, queue: DeliveryQueue): void {
  const queues = [...queue.lane];
  const own = queues.indexOf(queue) + 1;
  for (const one of [...queues.slice(own), ...queues.slice(0, own)]) dispatch(state, one);
}

/** If a message has lost a connection, it is not pipelined again: the one before it may end connections. */
function maxUnderway(queue: DeliveryQueue): number {
  return (queue.waiting[0]?.resends ?? 0) > 0 ? 0 : Infinity;
}

function mayOpen(state: PoolState, queue: DeliveryQueue): boolean {
  if (queue.opening >= queue.waiting.length) return false;
  if (queue.members.size + queue.opening > 0 && isOtherQueueStarved(queue)) return false;
  if (queue.members.size + queue.opening > 0 && queue.cancelBackOff !== null) return false;
  const most = maxConnections(state, queue);
  if (connectionsOf(queue) < most) return true;
  const spare = spareConnection(queue);
  if (spare === null) return false;
  retire(state, spare.queue, spare.member);
  return connectionsOf(queue) < most;
}

async function open(state: PoolState, queue: DeliveryQueue): Promise<void> {
  queue.opening++;
  const transcript: string[] = [];
  const connecting = await connect(state, queue, transcript);
  // No await may come between this and the next lines: the connection would be counted nowhere, and another one would
  // be opened.
  queue.opening--;
  if (connecting.kind === "open") join(state, queue, connecting.connection, transcript);
  else if (queue.members.size > 0 || queue.opening > 0) {
    backOff(state, queue);
    queue.whole.limits?.onConnectionFailed(connecting.result);
  } else failWaiting(state, queue, connecting.result, transcript, connecting.tried);
  dispatchLane(state, queue);
}

/** Tries to open one more connection, over the hosts in order. Never rejects. */
async function connect(
  state: PoolState,
  queue: DeliveryQueue,
  transcript: string[],
): Promise<ConnectOutcome> {
  const { clock, log, connect: connectTo = openConnection } = state.deps;
  const { timeouts } = state.options;
  const { destination } = queue;
  const until = clock.elapsed() + MAX_TRYING_MS;
  try {
    return await connectInOrder(clock, state.shunned, destination, until, async (host, ip) =>
      state.closing
        ? { kind: "failed", result: notTried(SHUTTING_DOWN) }
        : connectTo(state.deps, { ...destination, host, ip, timeouts }, transcript),
    );
  } catch (error) {
    log.error("opening an SMTP connection failed", { error: String(error), key: destination.key });
    return { kind: "failed", result: notTried("internal error"), tried: null };
  }
}

/** Pauses new connections, then tries again. While connections are being opened, their results decide first. */
function backOff(state: PoolState, queue: DeliveryQueue): void {
  queue.cancelBackOff?.();
  queue.cancelBackOff = state.deps.clock.after(BACK_OFF_MS, () => {
    queue.cancelBackOff = null;
    if (queue.members.size === 0 && queue.opening > 0) backOff(state, queue);
    else dispatch(state, queue);
  });
}

function join(state: PoolState, queue: DeliveryQueue, connection: Connection, opening: string[]): void {
  const member: Member = {
    connection,
    opening,
    sent: 0,
    underway: 0,
    aborted: 0,
    ready: true,
    idleSince: 0,
    idleTimer: false,
    cancelVerdictWait: null,
  };
  queue.members.add(member);
  connection.onClosed(() => leave(state, queue, member));
  if (!connection.usable()) leave(state, queue, member);
  else if (state.closing) retire(state, queue, member);
  else keep(state, queue, member);
}

function leave(state: PoolState, queue: DeliveryQueue, member: Member): void {
  member.ready = false;
  queue.members.delete(member);
  state.idle.delete(member);
  dispatchLane(state, queue);
}

/** Takes a connection out of use and ends its session. */
export function retire(state: PoolState, queue: DeliveryQueue, member: Member): void {
  leave(state, queue, member);
  const quitting = member.connection.quit();
  state.underway.add(quitting);
  quitting.finally(() => state.underway.delete(quitting));
}

function assign(state: PoolState, queue: DeliveryQueue, member: Member): void {
  const request = queue.waiting.shift();
  if (request === undefined) return;
  const first = member.sent === 0;
  member.sent++;
  member.underway++;
  queue.underway++;
  state.idle.delete(member);
  member.ready = false;
  request.member = member;
  closeAbandoned(state, member);
  if (first) note(request.transcript, ...member.opening);
  else note(request.transcript, `* kept connection to ${member.connection.host} [${member.connection.ip}]`);
  const cancelLimit = state.deps.clock.after(MAX_TRANSACTION_MS, () =>
    member.connection.close("the transaction took too long"),
  );
  const released = (): void => {
    member.ready = member.connection.usable() && member.sent < maxMessages(state, queue);
    dispatch(state, queue);
  };
  member.connection
    .send(request.mail, request.transcript, released)
    .catch((error: unknown): SendResult => {
      state.deps.log.error("sending failed", { error: String(error) });
      member.connection.close("internal error");
      return { kind: "trouble", stage: "final", reason: "internal error" };
    })
    .then((result) => {
      cancelLimit();
      finish(state, queue, request, member, result, first);
    });
}

function finish(
  state: PoolState,
  queue: DeliveryQueue,
  request: PendingDelivery,
  member: Member,
  result: SendResult,
  first: boolean,
): void {
  member.underway--;
  queue.underway--;
  if (request.aborted) member.aborted--;
  closeAbandoned(state, member);
  if (
    !first &&
    !request.aborted &&
    wasClosedBefore(result) &&
    request.resends < MAX_RESENDS &&
    !state.closing
  ) {
    request.resends++;
    request.member = null;
    queue.waiting.unshift(request);
  } else conclude(state, queue, request, member, result);
  if (member.underway === 0 && member.connection.usable()) rest(state, queue, member);
  dispatchLane(state, queue);
}

/** Resolves a delivery, or moves a deferred message to the next host's queue. */
function conclude(
  state: PoolState,
  queue: DeliveryQueue,
  request: PendingDelivery,
  member: Member,
  result: SendResult,
): void {
  const until = request.since + MAX_TRYING_MS;
  const next = queueForNextHost(state, queue, request, member, result, until);
  if (next === null) {
    settle(state, request, result);
    return;
  }
  request.member = null;
  request.queue = next;
  next.waiting.push(request);
}

function rest(state: PoolState, queue: DeliveryQueue, member: Member): void {
  const isOver =
    member.sent >= maxMessages(state, queue) || connectionsOf(queue) > maxConnections(state, queue);
  if (state.closing || isOver) {
    retire(state, queue, member);
    return;
  }
  keep(state, queue, member);
}

/** Keeps a connection for later messages. If too many are kept, closes the one idle for longest. */
function keep(state: PoolState, queue: DeliveryQueue, member: Member): void {
  const { clock } = state.deps;
  const { idleMs, maxIdle } = state.options;
  member.idleSince = clock.elapsed();
  state.idle.set(member, queue);
  watchIdle(state, queue, member, idleMs);
  const [oldest] = state.idle;
  if (state.idle.size > maxIdle && oldest !== undefined) retire(state, oldest[1], oldest[0]);
}

/** Watches a connection with one timer. If the connection was used since, the timer starts again. */
function watchIdle(state: PoolState, queue: DeliveryQueue, member: Member, afterMs: number): void {
  if (member.idleTimer) return;
  member.idleTimer = true;
  state.deps.clock.after(afterMs, () => {
    member.idleTimer = false;
    if (member.underway > 0 || !member.connection.usable()) return;
    const leftMs = member.idleSince + state.options.idleMs - state.deps.clock.elapsed();
    if (leftMs > 0) watchIdle(state, queue, member, leftMs);
    else retire(state, queue, member);
  });
}
