import { type Connection, openConnection } from "./connection.ts";
import type { SendResult } from "./delivery.ts";
import { type Candidate, connectInOrder } from "./host-order.ts";
import { connectionsOf, isStarvedBeside, laneToNextHost, spareBeside, usedMember } from "./next-host.ts";
import { family, type Lane, type Member, notTried, type Request, type State, settle } from "./pool-state.ts";

/** Times a message is handed to another connection because a kept one had been closed under it. */
export const MAX_RESENDS = 3;
/** Time without new connections after one has failed while others stand or are being opened. */
export const BACK_OFF_MS = 10_000;
/**
 * Time from the handing of a message to a connection to its end. Each step has its own limit (RFC 5321 §4.5.3.2), but a
 * peer that takes the message octet by octet makes progress for ever (a tarpit).
 */
export const MAX_TRANSACTION_MS = 30 * 60_000;
/** Time after which no further address is tried for one connection: peers that hang use all of their time at each. */
export const MAX_TRYING_MS = 12 * 60_000;

/** Gives waiting messages to connections: to one without work, else to a new one, else behind another message. */
export function dispatch(state: State, lane: Lane): void {
  while (lane.waiting.length > 0) {
    if (mustYield(state, lane)) {
      const used = usedMember(lane);
      if (used === undefined) break;
      retire(state, lane, used);
      continue;
    }
    const member =
      readyMember(lane, 0) ?? (mayOpen(state, lane) ? null : readyMember(lane, maxUnderway(lane)));
    if (member === undefined) break;
    if (member === null) open(state, lane).catch((error: unknown) => failLane(state, lane, error));
    else assign(state, lane, member);
  }
  forgetEmpty(state, lane);
}

/** Whether a lane that has no connection waits for one of this lane's: all that may be had are taken. */
function mustYield(state: State, lane: Lane): boolean {
  return (
    lane.members.size > 0 &&
    lane.opening === 0 &&
    isStarvedBeside(lane) &&
    [...lane.members].every(({ sent }) => sent > 0) &&
    connectionsOf(lane) >= state.options.maxConnectionsPerDestination
  );
}

function forgetEmpty(state: State, lane: Lane): void {
  const { members, opening, underway, waiting, branches, root } = lane;
  if (members.size + opening + underway + waiting.length + branches.size > 0) return;
  const { key } = lane.destination;
  // The last connection of an old lane may part when its destination has a new one already.
  if (root === null && state.lanes.get(key) === lane) state.lanes.delete(key);
  if (root === null) return;
  for (const [name, branch] of root.branches) if (branch === lane) root.branches.delete(name);
  forgetEmpty(state, root);
}

/** Dispatches all lanes that share a limit: a connection that one has done with may be what another waits for. */
function dispatchFamily(state: State, lane: Lane): void {
  for (const one of family(lane)) dispatch(state, one);
}

/** A message that has lost a connection once goes behind no other again: those before it may be what ends connections. */
function maxUnderway(lane: Lane): number {
  return (lane.waiting[0]?.resends ?? 0) > 0 ? 0 : Infinity;
}

function readyMember(lane: Lane, maxUnderway: number): Member | undefined {
  for (const member of lane.members) if (member.ready && member.underway <= maxUnderway) return member;
  return undefined;
}

function mayOpen(state: State, lane: Lane): boolean {
  if (lane.opening >= lane.waiting.length) return false;
  if (lane.members.size + lane.opening > 0 && isStarvedBeside(lane)) return false;
  if (lane.members.size + lane.opening > 0 && state.deps.clock.now() < lane.backOffUntil) return false;
  const { maxConnectionsPerDestination } = state.options;
  if (connectionsOf(lane) < maxConnectionsPerDestination) return true;
  const spare = spareBeside(lane);
  if (spare === null) return false;
  retire(state, spare.lane, spare.member);
  return connectionsOf(lane) < maxConnectionsPerDestination;
}

/** Opens one more connection, over the hosts in order. */
async function open(state: State, lane: Lane): Promise<void> {
  lane.opening++;
  const transcript: string[] = [];
  const { clock } = state.deps;
  const { timeouts } = state.options;
  const until = clock.now() + MAX_TRYING_MS;
  const connecting = await connectInOrder(clock, state.shunned, lane.destination, until, (host, ip) =>
    openConnection(state.deps, { ...lane.destination, host, ip, timeouts }, transcript),
  ).finally(() => lane.opening--);
  if (connecting.kind === "open") join(state, lane, connecting.connection, transcript);
  else if (lane.members.size > 0 || lane.opening > 0) lane.backOffUntil = clock.now() + BACK_OFF_MS;
  else failWaiting(state, lane, connecting.result, transcript, connecting.tried);
  dispatchFamily(state, lane);
}

function failLane(state: State, lane: Lane, error: unknown): void {
  state.deps.log.error("opening an SMTP connection failed", {
    error: String(error),
    key: lane.destination.key,
  });
  failWaiting(state, lane, notTried("internal error"), [], null);
}

/** No connection can be had and none stands: whoever waits hears it now, instead of each finding it out in turn. */
export function failWaiting(
  state: State,
  lane: Lane,
  result: SendResult,
  transcript: readonly string[],
  tried: Candidate | null,
): void {
  for (const request of lane.waiting.splice(0)) {
    request.transcript.push(...transcript);
    settle(state, request, result, tried);
  }
}

function join(state: State, lane: Lane, connection: Connection, opening: string[]): void {
  const idleSince = state.deps.clock.now();
  const member: Member = {
    connection,
    opening,
    sent: 0,
    underway: 0,
    aborted: 0,
    ready: true,
    idleSince,
    idleTimer: false,
  };
  lane.members.add(member);
  connection.whenCut(() => leave(state, lane, member));
  if (!connection.usable()) leave(state, lane, member);
  else if (state.closing) retire(state, lane, member);
  else watchIdle(state, lane, member, state.options.idleMs);
}

function leave(state: State, lane: Lane, member: Member): void {
  member.ready = false;
  lane.members.delete(member);
  dispatchFamily(state, lane);
}

/** Takes a connection out of use and ends its session. */
export function retire(state: State, lane: Lane, member: Member): void {
  leave(state, lane, member);
  const quitting = member.connection.quit();
  state.underway.add(quitting);
  quitting.finally(() => state.underway.delete(quitting));
}

function assign(state: State, lane: Lane, member: Member): void {
  const request = lane.waiting.shift();
  if (request === undefined) return;
  const first = member.sent === 0;
  member.sent++;
  member.underway++;
  lane.underway++;
  member.ready = false;
  request.member = member;
  if (first) request.transcript.push(...member.opening);
  else request.transcript.push(`* kept connection to ${member.connection.host} [${member.connection.ip}]`);
  const cancelLimit = state.deps.clock.after(MAX_TRANSACTION_MS, () =>
    member.connection.cut("the transaction took too long"),
  );
  const released = (): void => {
    member.ready = member.connection.usable() && member.sent < state.options.maxMessagesPerConnection;
    dispatch(state, lane);
  };
  member.connection
    .send(request.mail, request.transcript, released)
    .catch((error: unknown): SendResult => {
      state.deps.log.error("sending failed", { error: String(error) });
      member.connection.cut("internal error");
      return { kind: "trouble", stage: "final", reason: "internal error" };
    })
    .then((result) => {
      cancelLimit();
      finish(state, lane, request, member, result, first);
    });
}

/**
 * Time for which an abandoned message that the peer has whole is still waited for: most peers that look through a mail
 * have done so by then, and what is broken off before is tried again though the peer may have it (RFC 5321 §4.5.3.2.6).
 */
export const VERDICT_PATIENCE_MS = 120_000;

/** Ends a connection that carries only what nobody waits for any more. */
export function cutAbandoned(state: State, member: Member): void {
  const isAbandoned = (): boolean => member.underway > 0 && member.aborted === member.underway;
  if (!isAbandoned()) return;
  const patience = member.connection.awaitsVerdict() ? VERDICT_PATIENCE_MS : 0;
  const end = (): void => {
    if (isAbandoned()) member.connection.cut("aborted");
  };
  if (patience === 0) end();
  else state.deps.clock.after(patience, end);
}

function finish(
  state: State,
  lane: Lane,
  request: Request,
  member: Member,
  result: SendResult,
  first: boolean,
): void {
  member.underway--;
  lane.underway--;
  if (request.aborted) member.aborted--;
  else cutAbandoned(state, member);
  if (
    !first &&
    !request.aborted &&
    wasClosedBefore(result) &&
    request.resends < MAX_RESENDS &&
    !state.closing
  ) {
    request.resends++;
    request.member = null;
    lane.waiting.unshift(request);
  } else conclude(state, lane, request, member, result);
  if (member.underway === 0 && member.connection.usable()) rest(state, lane, member);
  dispatchFamily(state, lane);
}

/** Answers a delivery, or brings a message that its host has put off to the next. */
function conclude(state: State, lane: Lane, request: Request, member: Member, result: SendResult): void {
  const until = request.startedAt + MAX_TRYING_MS;
  const next = laneToNextHost(state, lane, request, member, result, until);
  if (next === null) {
    settle(state, request, result);
    return;
  }
  request.member = null;
  request.lane = next;
  next.waiting.push(request);
}

function rest(state: State, lane: Lane, member: Member): void {
  if (state.closing || member.sent >= state.options.maxMessagesPerConnection) {
    retire(state, lane, member);
    return;
  }
  member.idleSince = state.deps.clock.now();
  watchIdle(state, lane, member, state.options.idleMs);
}

/** A kept connection that ended before the peer took MAIL: the message has not been seen, another connection may have it. */
function wasClosedBefore(result: SendResult): boolean {
  if (result.kind === "trouble") return result.stage === "mail" && result.reason !== "aborted";
  return result.kind === "reply" && result.stage === "mail" && result.code === 421;
}

/** One timer looks after a connection; it rings again where the connection has been used since. */
function watchIdle(state: State, lane: Lane, member: Member, afterMs: number): void {
  if (member.idleTimer) return;
  member.idleTimer = true;
  state.deps.clock.after(afterMs, () => {
    member.idleTimer = false;
    if (member.underway > 0 || !member.connection.usable()) return;
    const leftMs = member.idleSince + state.options.idleMs - state.deps.clock.now();
    if (leftMs > 0) watchIdle(state, lane, member, leftMs);
    else retire(state, lane, member);
  });
}
