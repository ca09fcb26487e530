import { addressKey } from "../../core/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import { EVENT_OF_STATUS } from "../../core/events.ts";
import type { RecipientStatus } from "../../core/states.ts";
import type { Queue } from "../../queue/port.ts";
import { insertAttempt } from "../../store/attempts.ts";
import type { Db, Guard, Statement, Written } from "../../store/engine/client.ts";
import { claimGuard, type Claim, rollUpMessage, settleRecipient } from "../../store/outbox.ts";
import type { TriedRecipient } from "../../store/recipients.ts";
import { hint } from "../hint.ts";
import { announce, type Happening } from "../notify/announce.ts";
import { type DeliveryReport, isOpening, wholeReply } from "./outcome.ts";
import { countOutcome, tellSuspension } from "./reputation.ts";
import { suppressFor } from "./suppression.ts";
import type { CustodyStatus, Verdict } from "./verdict.ts";

export interface SettleDeps {
  db: Db;
  clock: Clock;
  queue: Queue;
  /** What a peer's 250 means. */
  custody: CustodyStatus;
}

/** A try that has ended. */
export interface Settling {
  recipient: TriedRecipient;
  claim: Claim;
  report: DeliveryReport;
  verdict: Verdict;
  /** A simulated outcome neither suppresses nor counts in the sender's rates. */
  simulated: boolean;
  /** Statements for the same write. */
  extra: readonly Statement[];
}

/** What ends a claim, and what is to be told once it is written. */
export interface Settlement {
  statements: Statement[];
  /** @param written what the write of the statements has told of each of them */
  tell(written: readonly Written[]): void;
}

/**
 * Ends a claim: attempt, event, webhook deliveries, suppression, counters and the recipient's new state in one
 * write, all of it only while the claim holds.
 */
export async function settle(deps: SettleDeps, settling: Settling): Promise<void> {
  const { statements, tell } = await settlement(deps, settling);
  tell(await deps.db.write(statements));
}

/** Outcomes of a mail that has left. A complaint that ends a try is a simulated one, behind its delivery. */
const HANDED_OVER: ReadonlySet<RecipientStatus> = new Set<RecipientStatus>([
  "sent",
  "delivered",
  "complained",
]);

/** The same for a write that does more. */
export async function settlement(deps: SettleDeps, settling: Settling): Promise<Settlement> {
  const { recipient, claim, report, verdict } = settling;
  const now = deps.clock.now();
  const guard = claimGuard(claim);
  const dueAt = verdict.retryInMs === null ? null : now + verdict.retryInMs;
  const announced = await announce(deps, recipient.senderId, happeningsOf(settling, dueAt), guard);
  const { status, reason, smtpCode, enhancedCode, diagnostic } = verdict;
  const uncounted = settling.simulated || isOurs(report, deps.custody);
  const counted = countOutcome({ recipient, status, uncounted, guard }, now);
  const statements = [
    ...counted,
    ...announced.statements,
    insertAttempt(
      {
        ...claim,
        ...report,
        transcript: transcriptOf(settling),
        smtpCode,
        enhancedCode,
        diagnostic,
        outcome: status,
      },
      guard,
    ),
    ...(uncounted ? [] : suppression(recipient, verdict, guard, now)),
    ...settling.extra,
    settleRecipient(
      claim,
      { status, reason, dueAt, mx: report.mx, tls: report.tls, smtpCode, enhancedCode, diagnostic },
      now,
    ),
    rollUpMessage(claim.messageId, HANDED_OVER.has(status) ? now : null),
  ];
  return {
    statements,
    tell(written) {
      tellSuspension(recipient.senderId, counted, written);
      hint(deps.queue, "push", announced.pushes);
    },
  };
}

/**
 * Whether the trouble lies with us alone: it says nothing of the recipient, and nothing of the sender. A smarthost is ours:
 * while it is down, or takes nothing from us, no recipient has been asked.
 */
function isOurs(report: DeliveryReport, custody: CustodyStatus): boolean {
  const relayed = custody === "sent";
  if (report.kind === "trouble") return relayed || report.stage === "internal";
  if (!relayed || report.kind !== "refused") return false;
  return isOpening(report.reply.stage) || report.reply.stage === "mail";
}

/** The conversation; where there was none, why, in the same form. */
function transcriptOf({ report, verdict }: Settling): readonly string[] {
  return report.transcript.length > 0 ? report.transcript : [`* ${verdict.diagnostic ?? verdict.status}`];
}

/** The event of the new state. A complaint comes of a mail that was delivered: that is told first, as the peer said it. */
function happeningsOf({ recipient, claim, report, verdict }: Settling, dueAt: number | null): Happening[] {
  const { messageId, email } = recipient;
  const happening = (told: Verdict): Happening => ({
    messageId,
    type: EVENT_OF_STATUS[told.status],
    email,
    data: eventData(told, report, claim, dueAt),
  });
  if (verdict.status !== "complained") return [happening(verdict)];
  return [happening({ ...verdict, ...replyOf(report), status: "delivered" }), happening(verdict)];
}

/** What the peer that took the mail said. */
function replyOf(report: DeliveryReport): Partial<Verdict> {
  if (report.kind !== "accepted") return {};
  const { code, enhanced } = report.reply;
  return { smtpCode: code, enhancedCode: enhanced, diagnostic: wholeReply(report.reply) };
}

/** The event's details, nested under the name that the interface gives them. */
function eventData(
  verdict: Verdict,
  report: DeliveryReport,
  claim: Claim,
  dueAt: number | null,
): Record<string, unknown> {
  const { smtpCode, enhancedCode, diagnostic, reason, category } = verdict;
  const { mx, tls } = report;
  switch (verdict.status) {
    case "delivered":
      return { delivery: { mx, tls, smtpCode, response: diagnostic } };
    case "sent":
      return { sent: { mx, tls, smtpCode, response: diagnostic } };
    case "complained":
      return { complaint: { feedbackType: reason } };
    case "bounced":
      return { bounce: { ...verdict.bounce, reason, smtpCode, enhancedCode, diagnostic, mx } };
    case "delivery_delayed": {
      const nextAttemptAt = dueAt === null ? null : new Date(dueAt).toISOString();
      return {
        delivery_delayed: {
          attempt: claim.attempt,
          nextAttemptAt,
          category,
          smtpCode,
          enhancedCode,
          diagnostic,
          mx,
        },
      };
    }
    default:
      return {
        [EVENT_OF_STATUS[verdict.status]]: { reason, category, smtpCode, enhancedCode, diagnostic, mx },
      };
  }
}

function suppression(recipient: TriedRecipient, verdict: Verdict, guard: Guard, now: number): Statement[] {
  if (verdict.bounce === null) return [];
  const { senderId, email, messageId } = recipient;
  const cause = { senderId, email: addressKey(email), messageId, bounceType: verdict.bounce.type };
  return [suppressFor(cause, guard, now)];
}
