import { type ReplyClass, classifyReply } from "../../mail/bounces/reply-class.ts";
import type { RecipientStatus } from "../../core/messages/states.ts";
import { retryDelayMs, type RetrySchedule } from "../../core/time/retry-schedule.ts";
import { type DeliveryReport, replyLine } from "./outcome.ts";

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

/** The status that a peer's custody gives: an MX delivers, a smarthost has only accepted. */
export type CustodyStatus = "delivered" | "sent";

/** Decides a report by the rules of bounces and retries. */
export function verdictOf(
  report: DeliveryReport,
  custody: CustodyStatus,
  policy: RetryPolicy,
  soFar: AttemptSoFar,
): Verdict {
  const facts = factsOf(report);
  switch (report.kind) {
    case "accepted":
      return final(facts, custody, null, null);
    case "undeliverable":
      return undeliverable(facts, report);
    case "trouble":
      return deferred(facts, report.reason, "infrastructure", policy, soFar);
    case "refused":
      return refused(facts, classifyReply(report.reply), policy, soFar);
  }
}

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

function refused(facts: Facts, found: ReplyClass, policy: RetryPolicy, soFar: AttemptSoFar): Verdict {
  const { outcome, category } = found;
  switch (outcome) {
    case "deferred":
      return deferred(facts, category, category, policy, soFar);
    case "hard":
    case "soft":
      return bounced(facts, outcome, category, category);
    case "failed":
      return final(facts, "failed", category, category);
  }
}

/** Returns a verdict to try again, or to give up as a soft bounce if the first attempt is too long ago. */
function deferred(
  facts: Facts,
  reason: string,
  category: string,
  policy: RetryPolicy,
  soFar: AttemptSoFar,
): Verdict {
  if (soFar.ageMs >= policy.giveUpMs) return bounced(facts, "soft", "retries_exhausted", category);
  const retryInMs = retryDelayMs(policy.schedule, soFar.attempt, soFar.random);
  return { ...facts, status: "delivery_delayed", reason, bounce: null, category, retryInMs };
}
