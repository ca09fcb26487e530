import { Fifo } from "../../core/fifo.ts";
import {
  type AttemptFacts,
  type DeliveryReport,
  type Passage,
  type PassageKind,
  standingOf,
} from "../send/outcome.ts";
import { Turns } from "./turns.ts";

/** Mail of one recipient domain that waits. */
export interface Line {
  domain: string;
  /** Keys of recipients that were not tried yet, and of those that were. */
  fresh: Fifo<string>;
  retries: Fifo<string>;
  /** Where it goes; null while that is being looked up for the first time. */
  place: Place | null;
  looking: boolean;
}

/** The way of a line's mail, when it was found, and when it was looked for last. */
export interface Place {
  passage: Passage;
  destination: Destination;
  foundAt: number;
  lookedAt: number;
}

/** Time after which the way of a domain is looked up again, milliseconds; it is used until the new one is there. */
export const PLACE_MS = 30_000;

/** How long a way is good for, milliseconds. One that could not be found is looked for again after a rest. */
export function validMs({ foregone }: Passage, restMs: number): number {
  return foregone === null ? PLACE_MS : Math.min(PLACE_MS, restMs);
}

/** How long a way that was found is used while look-ups fail, milliseconds: one of them must not put off all that waits. */
export const KEPT_PLACE_MS = 300_000;

/** Whether a look-up came to nothing for now, of a way that was found not long ago. */
export function isLapse(known: Place, found: Passage, now: number): boolean {
  if (found.foregone?.().kind !== "trouble" || known.passage.foregone !== null) return false;
  return Math.abs(now - known.foundAt) < KEPT_PLACE_MS;
}

/** A destination that could not be reached, and until when nobody tries it again. */
export interface Rest {
  until: number;
  since: number;
  report: DeliveryReport;
}

/** What shares connections and limits: the MX hosts of one provider, the smarthost, or nothing that leaves. */
export interface Destination {
  key: string;
  kind: PassageKind;
  /** Lines with mail; those with mail not tried yet go before those with retries. */
  turns: Turns<Line>;
  /** Whether it stands in a row of those that may begin something. */
  queued: boolean;
  /** Its mails in hand. */
  inHand: number;
  /** Whether it has answered since it was last in doubt. Until then one mail tries it. */
  answers: boolean;
  answeredAt: number;
  /** Mails that may try it at a time while it is in doubt. */
  trials: number;
  rest: Rest | null;
  /** Whether its rate lets a mail begin now. */
  moment: boolean;
  /** Whether it waits for its next moment. */
  pacing: boolean;
}

/** Mails of one destination in hand at a time. */
export interface PlaceLimits {
  /** Somebody else's MX hosts, once they have answered: enough to keep all connections busy. */
  hosts: number;
  /** The smarthost, and mail that does not leave. */
  own: number;
  /** Trials of a destination in doubt: one at first, one more for each that goes on without an end. */
  trials: number;
  /** Mails that end without a try: their destination rests, or there is none. */
  deferrals: number;
}

/** A line without mail. */
export function newLine(domain: string): Line {
  return { domain, fresh: new Fifo(), retries: new Fifo(), place: null, looking: false };
}

/** A destination of which nothing is known yet. */
export function newDestination(key: string, kind: PassageKind): Destination {
  return {
    key,
    kind,
    turns: new Turns(),
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

/** Whether nobody tries the destination now. */
export function isResting({ rest }: Destination, now: number): boolean {
  // A clock that was put back does not lengthen a rest.
  return rest !== null && rest.until > now && rest.since <= now;
}

/** Whether its mail ends without a try now. */
export function triesNothing(destination: Destination, now: number): boolean {
  return destination.kind === "none" || isResting(destination, now);
}

/** Mails of it that may be in hand now. */
export function places(destination: Destination, limits: PlaceLimits, now: number): number {
  if (triesNothing(destination, now)) return limits.deferrals;
  if (!destination.answers) return Math.min(destination.trials, limits.trials);
  return destination.kind === "hosts" ? limits.hosts : limits.own;
}

/** Takes down what a try of that time has told. True where the destination rests from now on. */
export function judge(
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
  // Others got through while this one did not: it is the mail, or one connection of many. An answer that lies ahead is
  // of before the clock was put back, and says nothing.
  const { answeredAt } = destination;
  if (standing !== "dead" || (answeredAt >= startedAt && answeredAt <= now)) return false;
  destination.answers = false;
  destination.trials = 1;
  destination.rest = { until: now + restMs, since: now, report };
  return true;
}

/** The report of a mail that was not tried because its destination rests. */
export function putOff({ since, until, report }: Rest, now: number): DeliveryReport {
  const reason = `${reasonOf(report)} (found ${seconds(now - since)} s before)`;
  const facts: AttemptFacts = {
    mx: report.mx,
    ip: report.ip,
    tls: null,
    transcript: [
      `* not tried: ${reason}; nobody tries this destination for another ${seconds(until - now)} s`,
    ],
    startedAt: now,
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
