import { classifyReply, clearsRecipient } from "../../mail/bounces/reply-class.ts";
import { readReply, type ReplyReading } from "../../mail/bounces/reply-reading.ts";
import type { ReplyCategory } from "../../mail/bounces/reply-phrases.ts";
import type { RecipientStatus } from "../../core/messages/states.ts";
import { retryDelayMs, type RetrySchedule } from "../../core/time/retry-schedule.ts";
import { type CustodyStatus, type DeliveryReport, type LaneNow, replyLine } from "./outcome.ts";

/** The delays between attempts, and the time after which no more are made. */
export interface RetryPolicy {
  schedule: RetrySchedule;
  /** Time since the first attempt after which a deferred recipient fails, milliseconds. */
  giveUpMs: number;
}

/** The meaning of an attempt for its recipient. */
export interface Verdict {
  status: RecipientStatus;
  /** Short machine word next to the status, for example `unknown_user` or `retries_exhausted`. Null for a delivery. */
  reason: string | null;
  bounce: { type: "hard" | "soft"; category: string } | null;
  category: string | null;
  smtpCode: number | null;
  enhancedCode: string | null;
  diagnostic: string | null;
  /** Milliseconds until the next attempt. Null if the status is final. */
  retryInMs: number | null;
}

export interface AttemptSoFar {
  /** 1-based number of this attempt. */
  attempt: number;
  /** Milliseconds from the first attempt to now. */
  ageMs: number;
  /** In [0, 1). */
  random: number;
}

/** Decides a report by the rules of bounces and retries. */
export function verdictOf(
  report: DeliveryReport,
  custody: CustodyStatus,
  policy: RetryPolicy,
  soFar: AttemptSoFar,
): Verdict {
  const facts = factsOf(report);
  const tries: Tries = { ...policy, ...soFar, lane: report.lane, hasOtherWay: report.hasOtherWay === true };
  switch (report.kind) {
    case "accepted":
      return final(facts, custody, null, null);
    case "undeliverable":
      return undeliverable(facts, report);
    case "trouble": {
      const { lane } = report;
      const cause = lane?.cause ?? null;
      // A message that waits for its lane has the lane's trouble, as if the provider had said it to this message.
      const waits = lane !== undefined && lane.opensInMs > 0 && lane.state !== "steady";
      return deferred(
        facts,
        waits ? (cause ?? report.reason) : report.reason,
        cause ?? "infrastructure",
        0,
        tries,
      );
    }
    case "refused":
      return refused(facts, readReply(report.reply), tries);
  }
}

/** The tries of a recipient so far, and what limits further ones. */
type Tries = RetryPolicy & AttemptSoFar & { lane: LaneNow | undefined; hasOtherWay: boolean };

type Facts = Pick<Verdict, "smtpCode" | "enhancedCode" | "diagnostic">;

function factsOf(report: DeliveryReport): Facts {
  if (report.kind === "accepted" || report.kind === "refused")
    return {
      smtpCode: report.reply.code,
      enhancedCode: report.reply.enhanced,
      diagnostic: replyLine(report.reply),
    };
  const { code = null, enhanced = null } = report.kind === "undeliverable" ? report : {};
  return { smtpCode: code, enhancedCode: enhanced, diagnostic: report.reason };
}

function undeliverable(
  facts: Facts,
  { verdict, reason }: DeliveryReport & { kind: "undeliverable" },
): Verdict {
  if (verdict === "hard") return bounced(facts, "hard", reason, "recipient");
  // By its code, as if a peer had refused it. A message that is too large has one reason, whether we or the peer
  // measure it.
  const { smtpCode: code, enhancedCode: enhanced } = facts;
  const { category } = classifyReply({ code, enhanced, text: "" });
  return final(facts, "failed", reason, category);
}

/** Returns a final verdict. */
function final(
  facts: Facts,
  status: Verdict["status"],
  reason: string | null,
  category: string | null,
  bounce: Verdict["bounce"] = null,
): Verdict {
  return { ...facts, status, reason, bounce, category, retryInMs: null };
}

function bounced(facts: Facts, type: "hard" | "soft", reason: string, category: string): Verdict {
  return final(facts, "bounced", reason, category, { type, category });
}

function refused(facts: Facts, reading: ReplyReading, tries: Tries): Verdict {
  const { outcome, category } = reading;
  if (outcome === "deferred" || isHeld(reading, tries))
    return deferred(facts, category, category, reading.retryAfterMs ?? 0, tries);
  if (outcome === "failed") return final(facts, "failed", category, category);
  return bounced(facts, outcome, category, category);
}

/**
 * Returns whether a lane holds a message that is refused for good, because it is our address that is refused. While that
 * is in doubt, each message is held once.
 */
function isHeld({ laneEffect }: ReplyReading, { lane, attempt }: Tries): boolean {
  if (laneEffect !== "block" || lane === undefined) return false;
  return lane.state === "blocked" || (lane.isDoubtful && attempt === 1);
}

/** Share by which a wait that the peer asks for is lengthened, so that messages do not all come back together. */
const WAIT_JITTER = 0.1;

/**
 * Returns a verdict to try again, or to give up if the first attempt is too long ago. The next try comes when the
 * schedule says, but not before the peer and the lane want it. The last one comes at the give-up time. If another way is
 * open, the next try comes at once.
 * @param retryAfterMs the wait that the peer asks for
 */
function deferred(
  facts: Facts,
  reason: string,
  category: ReplyCategory,
  retryAfterMs: number,
  tries: Tries,
): Verdict {
  const { ageMs, giveUpMs, random, lane } = tries;
  if (ageMs >= giveUpMs) return givenUp(facts, category, lane);
  const delayed = { ...facts, status: "delivery_delayed", reason, bounce: null, category } as const;
  if (tries.hasOtherWay) return { ...delayed, retryInMs: 0 };
  const scheduledMs = retryDelayMs(tries.schedule, tries.attempt, random);
  const askedMs = Math.max(retryAfterMs * (1 + random * WAIT_JITTER), lane?.opensInMs ?? 0);
  const retryInMs = Math.max(scheduledMs, Math.min(Math.round(askedMs), giveUpMs - ageMs));
  return { ...delayed, retryInMs };
}

/** The reason of a recipient whose tries are over. */
export const RETRIES_EXHAUSTED = "retries_exhausted";

/** Gives up. A bounce suppresses the address, so only trouble of the recipient or its server is one. */
function givenUp(facts: Facts, category: ReplyCategory, lane: LaneNow | undefined): Verdict {
  if (clearsRecipient(category) || lane?.state === "blocked")
    return final(facts, "failed", RETRIES_EXHAUSTED, category);
  return bounced(facts, "soft", RETRIES_EXHAUSTED, category);
}

/** Returns a final verdict without a peer's reply. */
export function decidedVerdict(status: Verdict["status"], reason: string): Verdict {
  return {
    status,
    reason,
    bounce: null,
    category: null,
    smtpCode: null,
    enhancedCode: null,
    diagnostic: reason,
    retryInMs: null,
  };
}
