/** Facts of one try, whatever came of it. Times are milliseconds. */
export interface AttemptFacts {
  /** Host that answered, or the last one tried; null where none was. */
  mx: string | null;
  ip: string | null;
  /** e.g. `TLSv1.3`; null where the conversation was in the clear. */
  tls: string | null;
  /** Lines of the conversation, without message body and secrets. */
  transcript: readonly string[];
  startedAt: number;
  durationMs: number;
}

/** A peer's reply that decided the try. */
export interface PeerReply {
  /** Where the conversation stood: `connect`, `ehlo`, `starttls`, `auth`, `mail`, `rcpt`, `data`, `final`. */
  stage: string;
  code: number;
  /** RFC 3463 code; null where the reply has none. */
  enhanced: string | null;
  text: string;
}

/**
 * What came of one try to hand a mail over.
 * - `accepted`: the peer took custody.
 * - `refused`: the peer said no, for now (4xx) or for good (5xx).
 * - `trouble`: nothing was settled (no connection, a timeout, no route): to be tried again.
 * - `undeliverable`: known without asking a peer. The verdict is `hard` for a domain that takes no mail, `failed` for a
 *   mail that no peer there could take.
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
        /** What a peer would have answered, where the mail is one that it cannot take. */
        code?: number;
        enhanced?: string;
      }
  );

/** When a job is to come again whose turn it is not yet. */
export interface Later {
  until: Promise<void>;
}

/** A composed mail on its way to one recipient. */
export interface Shipment {
  /** The VERP return path. */
  mailFrom: string;
  rcptTo: string;
  /** The recipient's domain, A-labels. */
  domain: string;
  raw: Buffer;
  smtpUtf8: boolean;
  /** Whether it is still ours to send; asked until the peer is given the content. Left out: nobody else can have it. */
  mayGo?: () => boolean | Promise<boolean>;
}

/** The mail was not handed over, for it was found to be another's by then. */
export class Withdrawn extends Error {}

/**
 * Hands one mail over. Every outcome of mail is a report; a throw of `Stopping` says that there is none, for the process
 * ends, one of `Withdrawn` likewise, and any other is a bug. An aborted `signal` ends it in trouble as soon as nothing else would be lost by that.
 */
export type Deliver = (shipment: Shipment, signal?: AbortSignal) => Promise<DeliveryReport>;

/**
 * Where mail for a domain goes.
 * - `none`: nowhere, for now or for good; what comes of it is known before it is taken up.
 * - `kept`: it stays here. Nothing limits it.
 * - `relay`: the operator's own smarthost, which takes as much as it can.
 * - `hosts`: somebody else's MX hosts, for which there are limits.
 */
export type PassageKind = "none" | "kept" | "relay" | "hosts";

/** The way of a domain's mail. */
export interface Passage {
  kind: PassageKind;
  /** What shares limits and connections: the set of MX hosts, the smarthost. */
  destination: string;
  /** What comes of a try, where that is known without the mail; it may change, so it is asked for each try. */
  foregone: (() => DeliveryReport) | null;
  deliver: Deliver;
}

/** Finds the way for a domain (A-labels), before a mail for it is taken up. A throw is a bug. */
export type FindPassage = (domain: string) => Promise<Passage>;

/**
 * What a try has told of its destination as a whole. `answers`: it takes part. `dead`: no session came about for now,
 * or one was waited for in vain, and the next mail would fare no better. `unknown`: nothing.
 */
export type Standing = "answers" | "dead" | "unknown";

/** Stages before a session stands: what fails there has not to do with the mail. */
const OPENING_STAGES: ReadonlySet<string> = new Set(["dns", "connect", "ehlo", "starttls", "auth"]);

/** Whether no session stands yet at that stage. */
export function isOpening(stage: string): boolean {
  return OPENING_STAGES.has(stage);
}

/** Time after which a try that came to nothing has cost more than the next one should, milliseconds. */
export const HANG_MS = 10_000;

/** What a report tells of its destination. */
export function standingOf(report: DeliveryReport): Standing {
  switch (report.kind) {
    case "accepted":
      return "answers";
    case "refused":
      if (!isOpening(report.reply.stage)) return "answers";
      // A refusal for good is the outcome of each mail, which must hear it: it costs one connection for all who wait.
      return report.reply.code < 500 ? "dead" : "unknown";
    case "trouble":
      return isOpening(report.stage) || report.durationMs >= HANG_MS ? "dead" : "unknown";
    case "undeliverable":
      return "unknown";
  }
}

/** The facts of a try that reached no peer. Times in milliseconds. */
export function noFacts(startedAt: number, durationMs = 0): AttemptFacts {
  return { mx: null, ip: null, tls: null, transcript: [], startedAt, durationMs };
}

/** A reply as the peer gave it, in one line: `550 5.1.1 no such user`, the form in which reports tell of one too. */
export function wholeReply({ code, enhanced, text }: PeerReply): string {
  return [String(code), enhanced ?? "", text].filter((part) => part !== "").join(" ");
}
