import { type Connection, openConnection } from "./connection.ts";
import { type SendResult, SHUTTING_DOWN } from "./delivery.ts";
import { type Candidate, type Connected, connectInOrder } from "./host-order.ts";
import { connectionsOf, isStarvedBeside, laneToNextHost, spareBeside, usedMember } from "./next-host.ts";
import { cutAbandoned } from "./pool-abandoned.ts";
import { family, type Lane, type Member, notTried, type Request, type State, settle } from "./pool-state.ts";
import { note } from "./transcript.ts";

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
    if (member === null) void open(state, lane);
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

/**
 * Dispatches all lanes that share a limit: a connection that one has done with may be what another waits for. They have
 * turns behind this one, so that none takes back at once what it has given up.
 */
export function dispatchFamily(state: State, lane: Lane): void {
  const lanes = family(lane);
  const own = lanes.indexOf(lane) + 1;
  for (const one of [...lanes.slice(own), ...lanes.slice(0, own)]) dispatch(state, one);
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
  if (lane.members.size + lane.opening > 0 && lane.cancelBackOff !== null) return false;
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
  const connecting = await connect(state, lane, transcript);
  // No turn lies between this and what follows: a connection that counts nowhere would have another opened beside it.
  lane.opening--;
  if (connecting.kind === "open") join(state, lane, connecting.connection, transcript);
  else if (lane.members.size > 0 || lane.opening > 0) backOff(state, lane);
  else failWaiting(state, lane, connecting.result, transcript, connecting.tried);
  dispatchFamily(state, lane);
}

/** The outcome of one try to have one more connection. Never rejects. */
async function connect(state: State, lane: Lane, transcript: string[]): Promise<Connected> {
  const { clock, log, connect: connectTo = openConnection } = state.deps;
  const { timeouts } = state.options;
  const { destination } = lane;
  const until = clock.now() + MAX_TRYING_MS;
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

/**
 * No new connections for a while; then whoever still waits, behind peers that may take long, has another one tried.
 * Where none stands, those being opened decide first: new ones begun beside them would have nobody ever hear of failure.
 */
function backOff(state: State, lane: Lane): void {
  lane.cancelBackOff?.();
  lane.cancelBackOff = state.deps.clock.after(BACK_OFF_MS, () => {
    lane.cancelBackOff = null;
    if (lane.members.size === 0 && lane.opening > 0) backOff(state, lane);
    else dispatch(state, lane);
  });
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
    note(request.transcript, ...transcript);
    settle(state, request, result, tried);
  }
}

function join(state: State, lane: Lane, connection: Connection, opening: string[]): void {
  const member: Member = {
    connection,
    opening,
    sent: 0,
    underway: 0,
    aborted: 0,
    ready: true,
    idleSince: 0,
    idleTimer: false,
    cancelPatience: null,
  };
  lane.members.add(member);
  connection.whenCut(() => leave(state, lane, member));
  if (!connection.usable()) leave(state, lane, member);
  else if (state.closing) retire(state, lane, member);
  else keep(state, lane, member);
}

function leave(state: State, lane: Lane, member: Member): void {
  member.ready = false;
  lane.members.delete(member);
  state.idle.delete(member);
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
  state.idle.delete(member);
  member.ready = false;
  request.member = member;
  cutAbandoned(state, member);
  if (first) note(request.transcript, ...member.opening);
  else note(request.transcript, `* kept connection to ${member.connection.host} [${member.connection.ip}]`);
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
  cutAbandoned(state, member);
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
  keep(state, lane, member);
}

/** Keeps a connection for later mail. Of one too many the one unused for longest goes. */
function keep(state: State, lane: Lane, member: Member): void {
  const { clock } = state.deps;
  const { idleMs, maxIdle } = state.options;
  member.idleSince = clock.now();
  state.idle.set(member, lane);
  watchIdle(state, lane, member, idleMs);
  const [oldest] = state.idle;
  if (state.idle.size > maxIdle && oldest !== undefined) retire(state, oldest[1], oldest[0]);
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
    const now = state.deps.clock.now();
    // A clock that was put back does not keep a connection until it has come round again.
    member.idleSince = Math.min(member.idleSince, now);
    const leftMs = member.idleSince + state.options.idleMs - now;
    if (leftMs > 0) watchIdle(state, lane, member, leftMs);
    else retire(state, lane, member);
  });
}
