import type { SendResult, Stage } from "./delivery.ts";
import { isShunned } from "./host-order.ts";
import {
  type DeliveryQueue,
  type Member,
  type PendingDelivery,
  type PoolState,
  queueOf,
} from "./pool-state.ts";

/** Hosts tried for one message in one attempt. If a domain has many, a deferral must not take too long. */
export const MAX_HOSTS_ASKED = 4;

/** If a session breaks at one of these stages, the peer does not have the message. */
const BEFORE_CONTENT: ReadonlySet<Stage> = new Set<Stage>(["mail", "rcpt", "data"]);

/**
 * RFC 5321 §5.1: checks whether a host only deferred the message, so that the next one is tried. If the session broke
 * after the content, the message may have been delivered; a later attempt handles it.
 */
function isDeferral(result: SendResult): boolean {
  if (result.kind === "reply")
    return (
      result.code >= 400 &&
      result.code < 500 &&
      (BEFORE_CONTENT.has(result.stage) || result.stage === "final")
    );
  return result.kind === "trouble" && BEFORE_CONTENT.has(result.stage);
}

/**
 * Returns the queue in which a message waits for a host not yet tried, or null if the result is final. Skips hosts that
 * recently failed to connect.
 * @param until time from which no further host is tried
 */
export function queueForNextHost(
  state: PoolState,
  queue: DeliveryQueue,
  request: PendingDelivery,
  member: Member,
  result: SendResult,
  until: number,
): DeliveryQueue | null {
  const now = state.deps.clock.elapsed();
  if (state.closing || request.aborted || now >= until || !isDeferral(result)) return null;
  const { connection } = member;
  const asked = [...request.triedHosts, connection.host];
  if (asked.length >= MAX_HOSTS_ASKED) return null;
  const { whole } = queue;
  if (result.kind !== "withdrawn" && whole.limits?.mayAskNextHost(result) === false) return null;
  const hosts = whole.hosts.filter(
    ({ name, addresses }) =>
      !asked.includes(name) &&
      !addresses.every((ip) => isShunned(state.shunned, { host: name, ip }, whole, now)),
  );
  if (hosts.length === 0) return null;
  request.triedHosts = asked;
  request.deferral = { result, connection };
  return queueOf(state, whole, { ...whole, hosts });
}

/** Counts open and opening connections of a queue and all queues that share its limit. */
export function connectionsOf({ lane }: DeliveryQueue): number {
  let count = 0;
  for (const { members, opening } of lane) count += members.size + opening;
  return count;
}

/** Finds an idle connection of another queue, to close it in favour of one for this queue. */
export function spareConnection(queue: DeliveryQueue): { queue: DeliveryQueue; member: Member } | null {
  for (const other of queue.lane) {
    if (other === queue || other.waiting.length > 0) continue;
    for (const member of other.members)
      if (member.ready && member.underway === 0) return { queue: other, member };
  }
  return null;
}

/** Checks whether another queue with the same limit has messages but no connection. */
export function isOtherQueueStarved(queue: DeliveryQueue): boolean {
  for (const other of queue.lane)
    if (other !== queue && other.waiting.length > 0 && other.members.size + other.opening === 0) return true;
  return false;
}

/**
 * Finds an idle connection that has served this queue. One that has not served yet must stay: otherwise queues would
 * open connections for each other and use none.
 */
export function idleUsedMember(queue: DeliveryQueue): Member | undefined {
  for (const member of queue.members)
    if (member.ready && member.underway === 0 && member.sent > 0) return member;
  return undefined;
}

export function readyMember(queue: DeliveryQueue, maxUnderway: number): Member | undefined {
  for (const member of queue.members) if (member.ready && member.underway <= maxUnderway) return member;
  return undefined;
}
