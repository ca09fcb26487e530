import type { SendResult, Stage } from "./delivery.ts";
import { isShunned } from "./host-order.ts";
import { family, type Lane, type Member, newLane, type Request, type State } from "./pool-state.ts";

/** Hosts that are asked to take one message in one try: a domain with many must not make a long walk of each deferral. */
export const MAX_HOSTS_ASKED = 4;

/** Stages at which a session may break without the peer having the message: another host may be asked at once. */
const BEFORE_CONTENT: ReadonlySet<Stage> = new Set<Stage>(["mail", "rcpt", "data"]);

/**
 * RFC 5321 §5.1: whether a host has only put a message off, so that the next one is to be asked. What the session lost
 * behind the message may have been delivered, and is left to a later try.
 */
function isPutOff(result: SendResult): boolean {
  if (result.kind === "reply")
    return (
      result.code >= 400 &&
      result.code < 500 &&
      (BEFORE_CONTENT.has(result.stage) || result.stage === "final")
    );
  return result.kind === "trouble" && BEFORE_CONTENT.has(result.stage);
}

/**
 * The lane where a message waits for a host that has not been asked yet; null where its outcome stands. Hosts that could
 * not be reached of late are not asked.
 * @param until time from which no further host is asked
 */
export function laneToNextHost(
  state: State,
  lane: Lane,
  request: Request,
  member: Member,
  result: SendResult,
  until: number,
): Lane | null {
  const now = state.deps.clock.now();
  if (state.closing || request.aborted || now >= until || !isPutOff(result)) return null;
  const { connection } = member;
  const asked = [...request.asked, connection.host];
  if (asked.length >= MAX_HOSTS_ASKED) return null;
  const root = lane.root ?? lane;
  const { destination } = root;
  const hosts = destination.hosts.filter(
    ({ name, addresses }) =>
      !asked.includes(name) &&
      !addresses.every((ip) => isShunned(state.shunned, { host: name, ip }, destination.port, now)),
  );
  if (hosts.length === 0) return null;
  request.asked = asked;
  request.putOff = { result, connection };
  const key = hosts.map(({ name }) => name).join(" ");
  const branch = root.branches.get(key) ?? newLane(destination, root);
  // The newest says where the hosts are by now.
  branch.destination = { ...destination, hosts };
  root.branches.set(key, branch);
  return branch;
}

/** Connections that stand or are being opened, of a lane and all that share its limit. */
export function connectionsOf(lane: Lane): number {
  return family(lane).reduce((sum, { members, opening }) => sum + members.size + opening, 0);
}

/** A connection that a lane beside this one could do without, for it to have another in its place. */
export function spareBeside(lane: Lane): { lane: Lane; member: Member } | null {
  for (const other of family(lane)) {
    if (other === lane || other.waiting.length > 0) continue;
    for (const member of other.members)
      if (member.ready && member.underway === 0) return { lane: other, member };
  }
  return null;
}

/** Whether another lane of those that share the limit has messages and no connection. */
export function isStarvedBeside(lane: Lane): boolean {
  if (lane.root === null && lane.branches.size === 0) return false;
  return family(lane).some(
    (other) => other !== lane && other.waiting.length > 0 && other.members.size + other.opening === 0,
  );
}

/** A connection that has served this lane and has nothing under way. One that has not served yet must not be given up: lanes would open connections for each other and use none. */
export function usedMember(lane: Lane): Member | undefined {
  for (const member of lane.members)
    if (member.ready && member.underway === 0 && member.sent > 0) return member;
  return undefined;
}
