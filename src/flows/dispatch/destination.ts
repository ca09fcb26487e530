import { Fifo } from "../../core/collections.ts";
import type { Clock } from "../../core/time/clock.ts";
import {
  type AttemptFacts,
  type DeliveryReport,
  type DeliveryRoute,
  type DeliveryRouteKind,
  standingOf,
} from "../deliver/outcome.ts";
import { TwoPriorityQueue } from "./two-priority-queue.ts";

/** Waiting messages of one recipient domain. */
export interface DomainQueue {
  domain: string;
  /** Keys of recipients that were not tried yet. */
  fresh: Fifo<string>;
  /** Keys of recipients that were tried before. */
  retries: Fifo<string>;
  /** Null until the first lookup has ended. */
  known: KnownRoute | null;
  lookingUp: boolean;
}

/** A domain's route, the time it was found, and the time of its last lookup. */
export interface KnownRoute {
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

/** The time in which a destination that could not be reached is not tried, in `Clock.elapsed`. */
export interface Rest {
  until: number;
  since: number;
  report: DeliveryReport;
}

/**
 * A peer whose messages share connections and limits: the MX hosts of one provider, or the smarthost. Captured mail has
 * one, too.
 */
export interface Destination {
  key: string;
  kind: DeliveryRouteKind;
  /** Domains with mail. Those with retries have low priority. */
  queues: TwoPriorityQueue<DomainQueue>;
  /** True if it is in the queue of destinations that may start a message. */
  queued: boolean;
  /** Number of its messages in hand. */
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

/** Messages of one destination in hand at once. */
export interface DestinationLimits {
  /** For MX hosts that have answered: enough to keep all connections busy. */
  hosts: number;
  /** For the smarthost, and for mail that does not leave this machine. */
  own: number;
  /** For a destination that has not answered: one at first, one more for each that hangs. */
  trials: number;
  /** For messages that end without a try, because their destination rests or there is none. */
  deferrals: number;
}

/** Returns an empty queue of a domain. */
export function newDomainQueue(domain: string): DomainQueue {
  return { domain, fresh: new Fifo(), retries: new Fifo(), known: null, lookingUp: false };
}

/** Returns a destination that was not tried yet. */
export function newDestination(key: string, kind: DeliveryRouteKind): Destination {
  return {
    key,
    kind,
    queues: new TwoPriorityQueue(),
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

/** Returns how many of its messages may be in hand now. */
export function maxInHand(destination: Destination, limits: DestinationLimits, now: number): number {
  if (hasNoTries(destination, now)) return limits.deferrals;
  if (!destination.answers) return Math.min(destination.trials, limits.trials);
  return destination.kind === "hosts" ? limits.hosts : limits.own;
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
  destination.answers = false;
  destination.trials = 1;
  destination.rest = { until: now + restMs, since: now, report };
  return true;
}

/** Returns the report of a message that was not tried because its destination rests. */
export function notTriedReport({ since, until, report }: Rest, clock: Clock): DeliveryReport {
  const now = clock.elapsed();
  const reason = `${reasonOf(report)} (found ${seconds(now - since)} s before)`;
  const facts: AttemptFacts = {
    mx: report.mx,
    ip: report.ip,
    tls: null,
    transcript: [
      `* not tried: ${reason}; this destination is not tried for another ${seconds(until - now)} s`,
    ],
    startedAt: clock.now(),
    durationMs: 0,
  };
  return { ...facts, kind: "trouble", stage: "connect", reason };
}

function reasonOf(report: DeliveryReport): string {
  if (report.kind === "trouble" || report.kind === "undeliverable") return report.reason;
  return `${report.reply.code} ${report.reply.text}`;
}

function seconds(ms: number): number {
  return Math.max(0, Math.ceil(ms / 1000));
}
