import type { ReplyCategory } from "../../mail/bounces/reply-phrases.ts";
import type { OutboundMail } from "../../smtp/client/delivery.ts";
import type { Statement } from "../../store/engine/client.ts";
import type { Lane } from "../lanes/lane.ts";

/** The status that a peer's custody gives: an MX delivers, a smarthost has only accepted. */
export type CustodyStatus = "delivered" | "sent";

/** Facts of one attempt, whatever its outcome. Times are milliseconds. */
export interface AttemptFacts {
  /** Host that answered, or the last one tried. Null if none was. */
  mx: string | null;
  ip: string | null;
  /** For example `TLSv1.3`. Null if the conversation was in the clear. */
  tls: string | null;
  /** Lines of the conversation, without message body and secrets. */
  transcript: readonly string[];
  startedAt: number;
  durationMs: number;
  /** The lane that the message took, after the attempt. Left out if it took none. */
  lane?: LaneNow;
  /** Our own address that the message came from. Left out if the system chose it. */
  egress?: string;
  /** The route that the message took. Left out for the default one. */
  routeId?: string;
  /** The id by which events of that route's relay name the message. Left out if it has none. */
  relayId?: string;
  /** The status that a 250 gives on that route. Left out if it is the usual one. */
  custody?: CustodyStatus;
  /** True if nothing was sent, and another way is open, so the message need not wait for this one. */
  hasOtherWay?: boolean;
}

/**
 * The lane of a provider after an attempt. `slowed`: it sends less than it may. `resting`: it sends nothing for a time.
 * `blocked`: the provider refuses our address, so the lane holds a message that is refused for that.
 */
export interface LaneNow {
  /** The provider's name, or that of the set of MX hosts. */
  name: string;
  state: "steady" | "slowed" | "resting" | "blocked";
  /** Milliseconds until the lane takes messages; 0 if it takes them now. */
  opensInMs: number;
  /** Subject of the reply by which the lane is not steady. Null if it is steady, or no reply was the reason. */
  cause: ReplyCategory | null;
  /** True if the provider may refuse our address rather than the message, which then gets a second try. */
  isDoubtful: boolean;
  /** Statements that store the lane, for the write of the outcome. */
  changes: readonly Statement[];
}

/** The peer's reply that decided the attempt. */
export interface PeerReply {
  /** Stage of the conversation: `connect`, `ehlo`, `starttls`, `auth`, `mail`, `rcpt`, `data`, `final`. */
  stage: string;
  code: number;
  /** RFC 3463 code. Null if the reply has none. */
  enhanced: string | null;
  text: string;
}

/**
 * The outcome of one attempt to hand over a message.
 * - `accepted`: the peer took custody.
 * - `refused`: the peer said no, for now (4xx) or for good (5xx).
 * - `trouble`: nothing was settled (no connection, a timeout, no route), so it is tried again.
 * - `undeliverable`: known without asking a peer. The verdict is `hard` if the domain takes no mail, `failed` if no
 *   peer there can take this message.
 */
export type DeliveryReport = AttemptFacts &
  (
    | { kind: "accepted"; reply: PeerReply }
    | { kind: "refused"; reply: PeerReply }
    | { kind: "trouble"; stage: string; reason: string }
    | {
        kind: "undeliverable";
        verdict: "hard" | "failed";
        reason: string;
        /** The reply that a peer would give, if it cannot take the message. */
        code?: number;
        enhanced?: string;
      }
  );

/** The time at which a job should come again. */
export interface Later {
  until: Promise<void>;
}

/** A composed message for one recipient. */
export interface Shipment extends Pick<OutboundMail, "stillWanted"> {
  /** The VERP return path. */
  mailFrom: string;
  rcptTo: string;
  /** The recipient's domain, A-labels. */
  domain: string;
  raw: Buffer;
  smtpUtf8: boolean;
}

/** The message was not handed over, because another process has it. */
export class Withdrawn extends Error {}

/**
 * Hands over one message. Each outcome is a report. It throws `PoolClosedError` if the process ends, and `Withdrawn` if
 * another process has the message. Any other error is a bug. If `signal` aborts, it ends with trouble as soon as the
 * peer cannot have accepted the message.
 */
export type Deliver = (shipment: Shipment, signal?: AbortSignal) => Promise<DeliveryReport>;

/**
 * Kind of the route of a domain's messages.
 * - `none`: no route, for now or for good. The outcome is known before a message is claimed.
 * - `kept`: stays on this machine, without limits.
 * - `relay`: the operator's own smarthost, which takes as much as it can.
 * - `hosts`: MX hosts, which have limits.
 */
export type DeliveryRouteKind = "none" | "kept" | "relay" | "hosts";

/** The route of a domain's messages. */
export interface DeliveryRoute {
  kind: DeliveryRouteKind;
  /** Key of the peer that shares limits: the lane, or the smarthost. */
  destination: string;
  /** The lane of MX hosts. Left out for any other peer. */
  lane?: Lane;
  /** Returns the outcome if it is known without the message. It may change, so it is called for each attempt. */
  knownOutcome: (() => DeliveryReport) | null;
  deliver: Deliver;
  /** Facts about the route, for reports. */
  stamp?: Pick<AttemptFacts, "routeId" | "custody">;
  /** The lane above whose warm-up cap it takes messages, and no others. Left out if it takes any. */
  overflowOf?: Lane;
  /** Returns the ways from a pool in order of preference, at least one. Left out if this is the only one. */
  ways?: (pool: string | null) => readonly DeliveryRoute[];
}

/** The ways that some messages may take, in order of preference. */
export type Ways = readonly [DeliveryRoute, ...DeliveryRoute[]];

/** Finds the route of a domain (A-labels) before a message for it is claimed. An error is a bug. */
export type FindDeliveryRoute = (domain: string) => Promise<DeliveryRoute>;

/**
 * The state of a destination as an attempt shows it.
 * - `answers`: it takes part.
 * - `dead`: no session could be opened, or one hung, so the next message would do no better.
 * - `unknown`: the attempt says nothing about it.
 */
export type Standing = "answers" | "dead" | "unknown";

/** Stages before a session is open. A failure there does not depend on the message. */
const OPENING_STAGES: ReadonlySet<string> = new Set(["dns", "connect", "ehlo", "starttls", "auth"]);

/** Returns whether the session is not open yet at that stage. */
export function isOpening(stage: string): boolean {
  return OPENING_STAGES.has(stage);
}

/** Returns whether the peer failed or refused before it could have the message. */
export function isBeforeContent(report: DeliveryReport): boolean {
  if (report.kind === "trouble") return isOpening(report.stage);
  return report.kind === "refused" && report.reply.stage !== "data" && report.reply.stage !== "final";
}

/** Time after which a failed attempt counts as hung, milliseconds. */
export const HANG_MS = 10_000;

/** Returns the state of the destination that a report shows. */
export function standingOf(report: DeliveryReport): Standing {
  switch (report.kind) {
    case "accepted":
      return "answers";
    case "refused":
      if (!isOpening(report.reply.stage)) return "answers";
      // A permanent refusal is the outcome of each message, so each must get it. It costs one connection for all of
      // them.
      return report.reply.code < 500 ? "dead" : "unknown";
    case "trouble":
      return isOpening(report.stage) || report.durationMs >= HANG_MS ? "dead" : "unknown";
    case "undeliverable":
      return "unknown";
  }
}

/** Returns the facts of an attempt that reached no peer. Times in milliseconds. */
export function noFacts(startedAt: number, durationMs = 0): AttemptFacts {
  return { mx: null, ip: null, tls: null, transcript: [], startedAt, durationMs };
}

/** Returns a reply in one line, as reports show it: `550 5.1.1 no such user`. */
export function replyLine({ code, enhanced, text }: PeerReply): string {
  return [String(code), enhanced ?? "", text].filter((part) => part !== "").join(" ");
}
