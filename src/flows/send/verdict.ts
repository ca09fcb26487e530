import { type ReplyClass, classifyReply } from "../../mail/bounces/reply-class.ts";
import type { RecipientStatus } from "../../core/states.ts";
import { retryDelayMs, type RetrySchedule } from "../../core/retry.ts";
import { type DeliveryReport, wholeReply } from "./outcome.ts";

/** When a recipient is tried again, and for how long. */
export interface RetryPolicy {
  schedule: RetrySchedule;
  /** Time since the first attempt after which a deferred recipient is given up, milliseconds. */
  giveUpMs: number;
}

/** What a try means for its recipient. */
export interface Verdict {
  status: RecipientStatus;
  /** Short machine word kept beside the status, e.g. `unknown_user`, `retries_exhausted`; null for a delivery. */
  reason: string | null;
  bounce: { type: "hard" | "soft"; category: string } | null;
  category: string | null;
  smtpCode: number | null;
  enhancedCode: string | null;
  diagnostic: string | null;
  /** Milliseconds until the next try; null where the status is final. */
  retryInMs: number | null;
}

export interface AttemptSoFar {
  /** 1-based number of this try. */
  attempt: number;
  /** Milliseconds from the first try to now. */
  ageMs: number;
  /** In [0, 1). */
  random: number;
}

/** The status that a peer's custody means: the recipient's own MX delivers, a smarthost has only taken it on. */
export type CustodyStatus = "delivered" | "sent";

/** Reads a report by the rules of bounces and retries. */
export function verdictOf(
  report: DeliveryReport,
  custody: CustodyStatus,
  policy: RetryPolicy,
  soFar: AttemptSoFar,
): Verdict {
  const facts = factsOf(report);
  switch (report.kind) {
    case "accepted":
      return { ...facts, status: custody, reason: null, bounce: null, category: null, retryInMs: null };
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
      diagnostic: wholeReply(report.reply),
    };
  const { code = null, enhanced = null } = report.kind === "undeliverable" ? report : {};
  return { smtpCode: code, enhancedCode: enhanced, diagnostic: report.reason };
}

function undeliverable(
  facts: Facts,
  { verdict, reason }: DeliveryReport & { kind: "undeliverable" },
): Verdict {
  if (verdict === "hard") {
    const category = "recipient";
    return {
      ...facts,
      status: "bounced",
      reason,
      bounce: { type: "hard", category },
      category,
      retryInMs: null,
    };
  }
  // By its code, as the same refusal is that a peer says itself: a mail too large is one whoever measures it.
  const { smtpCode: code, enhancedCode: enhanced } = facts;
  const { category } = classifyReply({ code, enhanced, text: "" });
  return { ...facts, status: "failed", reason, bounce: null, category, retryInMs: null };
}

function refused(facts: Facts, found: ReplyClass, policy: RetryPolicy, soFar: AttemptSoFar): Verdict {
  const { outcome, category } = found;
  switch (outcome) {
    case "deferred":
      return deferred(facts, category, category, policy, soFar);
    case "hard":
    case "soft":
      return {
        ...facts,
        status: "bounced",
        reason: category,
        bounce: { type: outcome, category },
        category,
        retryInMs: null,
      };
    case "failed":
      return { ...facts, status: "failed", reason: category, bounce: null, category, retryInMs: null };
  }
}

/** To be tried again, or given up as a soft bounce once the first try is too long ago. */
function deferred(
  facts: Facts,
  reason: string,
  category: string,
  policy: RetryPolicy,
  soFar: AttemptSoFar,
): Verdict {
  if (soFar.ageMs >= policy.giveUpMs)
    return {
      ...facts,
      status: "bounced",
      reason: "retries_exhausted",
      bounce: { type: "soft", category },
      category,
      retryInMs: null,
    };
  const retryInMs = retryDelayMs(policy.schedule, soFar.attempt, soFar.random);
  return { ...facts, status: "delivery_delayed", reason, bounce: null, category, retryInMs };
}
