import { Fifo } from "../../core/collections.ts";
import type { Clock } from "../../core/time/clock.ts";
import {
  type AttemptFacts,
  type DeliveryReport,
  type DeliveryRoute,
  type DeliveryRouteKind,
  standingOf,
  type Ways,
} from "../deliver/outcome.ts";
import type { Place } from "../deliver/ways.ts";
import type { Lane } from "../lanes/lane.ts";
import { laneNow } from "./judge.ts";
import { TwoPriorityQueue } from "./two-priority-queue.ts";

/** Waiting messages of one project and stream for one recipient domain. */
export interface DomainQueue extends Place {
  /** The lane of its jobs. */
  name: string;
  /** Keys of recipients that were not tried yet. */
  high: Fifo<string>;
  /** Keys of recipients that were tried before, or get bulk mail. */
  low: Fifo<string>;
  /** Null until the first lookup has ended. */
  known: KnownRoute | null;
  lookingUp: boolean;
}

/** A domain's ways with the one in use, the time they were found, and the time of the last lookup. */
export interface KnownRoute {
  ways: Ways;
  route: DeliveryRoute;
  destination: Destination;
  foundAt: number;
  lookedUpAt: number;
}

/** Time after which the route of a domain is found again, milliseconds. The old one is used until then. */
export const ROUTE_REFRESH_MS = 30_000;

/** Returns for how long a route is valid, milliseconds. If none was found, the lookup is repeated after a rest. */
export function validMs({ knownOutcome }: DeliveryRoute, restMs: number): number {
  return knownOutcome === null ? ROUTE_REFRESH_MS : Math.min(ROUTE_REFRESH_MS, restMs);
}

/** Time for which a route is used while lookups fail, milliseconds. One failed lookup must not defer all that waits. */
export const ROUTE_KEPT_MS = 300_000;

/** Returns whether a lookup failed for now and the known route is recent enough to be kept. */
export function isFailedLookup(known: KnownRoute, found: DeliveryRoute, now: number): boolean {
  if (found.knownOutcome?.().kind !== "trouble" || known.route.knownOutcome !== null) return false;
  return now - known.foundAt < ROUTE_KEPT_MS;
}

/** The time in which a destination is not tried, in `Clock.elapsed`. */
export interface Rest {
  until: number;
  since: number;
  /** The report after which it could not be reached. Null if its lane rests. */
  report: DeliveryReport | null;
  /** True if a timer waits for its end. */
  watched: boolean;
}

/**
 * A peer whose messages share connections and limits: the MX hosts of one provider, or the smarthost. Captured mail has
 * one, too.
 */
export interface Destination {
  key: string;
  kind: DeliveryRouteKind;
  /** Says how many messages may leave, and when. Null if the peer is not a lane's. */
  lane: Lane | null;
  /** Domains with mail. Projects take turns, then their domains. Retries and bulk mail have low priority. */
  queues: TwoPriorityQueue<DomainQueue>;
  /** True if it is in the queue of destinations that may start a message. */
  queued: boolean;
  /** Number of its messages in progress. */
  inHand: number;
  /** True if it has answered since it last failed. Until then one message tries it. */
  answers: boolean;
  answeredAt: number;
  /** Messages that may try it at once until it answers. */
  trials: number;
  rest: Rest | null;
  /** True if its rate allows a message to start now. */
  moment: boolean;
  /** True if it waits for its next moment. */
  pacing: boolean;
}

/** Messages of one destination in progress at once. */
export interface DestinationLimits {
  /** For each connection that the lane of MX hosts may have: enough to keep it busy. */
  perConnection: number;
  /** For the smarthost, and for mail that does not leave this machine. */
  own: number;
  /** For a destination that has not answered: one at first, one more for each that hangs. */
  trials: number;
  /** For messages that end without a try, because their destination rests or there is none. */
  deferrals: number;
}

/** Returns an empty queue of a project's messages for a domain. */
export function newDomainQueue(name: string, place: Place): DomainQueue {
  return { ...place, name, high: new Fifo(), low: new Fifo(), known: null, lookingUp: false };
}

/** Returns how many messages wait, by lane. */
export function waitingByLane(queues: Iterable<DomainQueue>): Map<string, number> {
  const waiting = new Map<string, number>();
  for (const { known, high, low } of queues) {
    const name = known?.destination.lane?.name;
    if (name !== undefined) waiting.set(name, (waiting.get(name) ?? 0) + high.size + low.size);
  }
  return waiting;
}

/** Returns a destination that was not tried yet. */
export function newDestination(key: string, kind: DeliveryRouteKind, lane: Lane | null = null): Destination {
  return {
    key,
    kind,
    lane,
    queues: new TwoPriorityQueue(({ senderId }) => senderId),
    queued: false,
    inHand: 0,
    answers: kind === "kept" || kind === "none",
    answeredAt: Number.NEGATIVE_INFINITY,
    trials: 1,
    rest: null,
    moment: false,
    pacing: false,
  };
}

/** Returns whether the destination is not tried now. */
export function isResting({ rest }: Destination, now: number): boolean {
  return rest !== null && rest.until > now;
}

/** Returns whether messages to it end without a try now. */
export function hasNoTries(destination: Destination, now: number): boolean {
  return destination.kind === "none" || isResting(destination, now);
}

/** Returns how many of its messages may be in progress now. */
export function maxInHand(destination: Destination, limits: DestinationLimits, now: number): number {
  if (hasNoTries(destination, now)) return limits.deferrals;
  if (!destination.answers) return Math.min(destination.trials, limits.trials);
  return destination.lane === null ? limits.own : destination.lane.state.connections * limits.perConnection;
}

/** Records what a try tells about its destination. Returns true if the destination rests from now on. */
export function recordReport(
  destination: Destination,
  report: DeliveryReport,
  { startedAt, now }: { startedAt: number; now: number },
  restMs: number,
): boolean {
  const standing = standingOf(report);
  if (standing === "answers") {
    destination.answers = true;
    destination.answeredAt = now;
    destination.rest = null;
  }
  // If other messages got through during this try, the failure is of this message or one connection.
  if (standing !== "dead" || destination.answeredAt >= startedAt) return false;
  rest(destination, { until: now + restMs, since: now, report, watched: false });
  return true;
}

function rest(destination: Destination, until: Rest): void {
  destination.answers = false;
  destination.trials = 1;
  destination.rest = until;
}

/** Records that the destination gave an answer that its lane obeys. */
export function recordAnswer(destination: Destination, now: number): void {
  destination.answers = true;
  destination.answeredAt = now;
}

/** Rest of a lane from which on its messages are put off, milliseconds. In a shorter one they wait here. */
export const PUT_OFF_MS = 120_000;

/** Lets a destination rest as long as its lane does. Returns true if it begins or ends a rest. */
export function restWithLane(destination: Destination, now: number): boolean {
  const { lane, rest: known } = destination;
  if (lane === null) return false;
  const until = now + lane.opensInMs;
  const isOfLane = known !== null && known.report === null && known.until > now;
  if (isOfLane && until < known.until - PUT_OFF_MS) {
    destination.rest = null;
    return true;
  }
  if (until <= Math.max(now + PUT_OFF_MS, known?.until ?? 0)) return false;
  rest(destination, { until, since: now, report: null, watched: false });
  return true;
}

/** Returns the report of a message that was not tried because its destination rests. */
export function notTriedReport(
  { since, until, report }: Rest,
  lane: Lane | null,
  clock: Clock,
): DeliveryReport {
  const now = clock.elapsed();
  const why = report === null ? laneReason(lane) : reasonOf(report);
  const reason = `${why} (found ${seconds(now - since)} s before)`;
  const facts: AttemptFacts = {
    mx: report?.mx ?? null,
    ip: report?.ip ?? null,
    tls: null,
    transcript: [
      `* not tried: ${reason}; this destination is not tried for another ${seconds(until - now)} s`,
    ],
    startedAt: clock.now(),
    durationMs: 0,
    ...(lane === null ? {} : { lane: laneNow(lane) }),
  };
  return { ...facts, kind: "trouble", stage: "connect", reason };
}

function laneReason(lane: Lane | null): string {
  const warmUp = lane?.warmUpReason ?? null;
  if (warmUp !== null) return warmUp;
  const who = lane?.provider?.title ?? "the provider";
  // Without its reply, which may name a domain or recipient of another project.
  return lane?.word === "blocked" ? `${who} refuses our address` : `${who} asked us to wait`;
}

function reasonOf(report: DeliveryReport): string {
  if (report.kind === "trouble" || report.kind === "undeliverable") return report.reason;
  return `${report.reply.code} ${report.reply.text}`;
}

function seconds(ms: number): number {
  return Math.max(0, Math.ceil(ms / 1000));
}
