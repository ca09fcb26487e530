import { addressKey } from "../../core/addresses.ts";
import { EVENT_OF_STATUS } from "../../core/messages/events.ts";
import type { RecipientStatus } from "../../core/messages/states.ts";
import { insertAttempt } from "../../store/messages/attempts.ts";
import type { Guard, Statement, Written } from "../../store/engine/client.ts";
import { claimGuard, type Claim, rollUpMessage, settleRecipient } from "../../store/messages/outbox.ts";
import { noteEngagement } from "../../store/audience/engagement-times.ts";
import type { ReputationLimits } from "../../store/projects/reputation.ts";
import type { TriedRecipient } from "../../store/messages/recipients.ts";
import { hint } from "../../queue/hint.ts";
import { announce, type EventDraft } from "../webhooks/announce.ts";
import { type CustodyStatus, type DeliveryReport, isOpening, replyLine } from "./outcome.ts";
import { rememberRelayId } from "../../store/threads/relay-ids.ts";
import { relayMessageId } from "./relay-message-id.ts";
import { countOutcome, logSuspension } from "./reputation.ts";
import { stopForwarding, suppressFor } from "./suppression.ts";
import { RETRIES_EXHAUSTED, type Verdict } from "./verdict.ts";
import type { Outbox } from "../outbox.ts";

export interface SettleDeps extends Outbox {
  /** The status that a peer's 250 gives. */
  custody: CustodyStatus;
  /** Limits that suspend a sender. */
  suspension: ReputationLimits;
}

/** An attempt that has ended. */
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

/** The statements that end a claim, and what to do after their write. */
export interface Settlement {
  statements: Statement[];
  /** @param written the result of each statement */
  afterWrite(written: readonly Written[]): void;
}

/**
 * Ends a claim in one write: attempt, event, webhook deliveries, suppression, counters and the recipient's new state.
 * All of it takes effect only if the claim still holds.
 */
export async function settle(deps: SettleDeps, settling: Settling): Promise<void> {
  const { statements, afterWrite } = await settlement(deps, settling);
  afterWrite(await deps.db.write(statements));
}

/**
 * Outcomes of a message that has left. If a complaint ends an attempt, it is simulated and comes after the delivery.
 */
const HANDED_OVER: ReadonlySet<RecipientStatus> = new Set<RecipientStatus>([
  "sent",
  "delivered",
  "complained",
]);

/** Returns the settlement for a write that contains more. */
export async function settlement(deps: SettleDeps, settling: Settling): Promise<Settlement> {
  const { recipient, claim, report, verdict } = settling;
  const now = deps.clock.now();
  const guard = claimGuard(claim);
  const custody = report.custody ?? deps.custody;
  const dueAt = verdict.retryInMs === null ? null : now + verdict.retryInMs;
  const announced = await announce(deps, recipient.senderId, draftsOf(settling, dueAt), guard);
  const { status, reason, smtpCode, enhancedCode, diagnostic } = verdict;
  const uncounted = settling.simulated || isOurs(report, custody) || isClearedGiveUp(verdict);
  const counted = countOutcome(
    { recipient, status, mx: report.mx, uncounted, excused: isExcused(report, verdict), guard },
    deps.suspension,
    now,
  );
  const handedOver = HANDED_OVER.has(status);
  const relayId = custody === "sent" ? relayMessageId(report) : null;
  const statements = [
    ...counted,
    ...announced.statements,
    insertAttempt(
      {
        ...claim,
        ...report,
        egress: report.egress ?? null,
        routeId: report.routeId ?? null,
        relayId: report.relayId ?? null,
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
    ...(report.lane?.changes ?? []),
    ...(relayId === null ? [] : [rememberRelayId(claim.messageId, relayId, guard)]),
    settleRecipient(
      claim,
      { status, reason, dueAt, mx: report.mx, tls: report.tls, smtpCode, enhancedCode, diagnostic },
      now,
    ),
    rollUpMessage(claim.messageId, handedOver ? now : null),
    ...(handedOver ? [noteEngagement("sent", recipient.senderId, addressKey(recipient.email), now)] : []),
    ...(await stopForwarding(deps.db, recipient, status, now)),
  ];
  return {
    statements,
    afterWrite(written) {
      logSuspension(recipient.senderId, counted, written);
      hint(deps.queue, "push", announced.pushes);
    },
  };
}

/**
 * Returns whether only our side has trouble, so that it says nothing about recipient and sender. The smarthost is on
 * our side: while it is down or refuses us, no peer has seen the message.
 */
function isOurs(report: DeliveryReport, custody: CustodyStatus): boolean {
  const relayed = custody === "sent";
  if (report.kind === "trouble") return relayed || report.stage === "internal";
  if (!relayed || report.kind !== "refused") return false;
  return isOpening(report.reply.stage) || report.reply.stage === "mail";
}

/** Returns whether tries ended for a reason that says nothing about the recipient, so that no rate counts it. */
function isClearedGiveUp({ status, reason }: Verdict): boolean {
  return status === "failed" && reason === RETRIES_EXHAUSTED;
}

/** Returns whether a bounce says nothing about the sender's list. A lane that is not steady may have caused it. */
function isExcused({ lane }: DeliveryReport, { bounce }: Verdict): boolean {
  return bounce?.type === "soft" || (lane !== undefined && lane.state !== "steady");
}

/** Returns the conversation. If there was none, returns the reason in the same form. */
function transcriptOf({ report, verdict }: Settling): readonly string[] {
  return report.transcript.length > 0 ? report.transcript : [`* ${verdict.diagnostic ?? verdict.status}`];
}

/**
 * Returns the events of the new state. A complaint follows a delivery, so that event comes first, with the peer's
 * reply.
 */
function draftsOf({ recipient, claim, report, verdict }: Settling, dueAt: number | null): EventDraft[] {
  const { messageId, email } = recipient;
  const draft = (outcome: Verdict): EventDraft => ({
    messageId,
    type: EVENT_OF_STATUS[outcome.status],
    email,
    data: eventData(outcome, report, claim, dueAt),
  });
  if (verdict.status !== "complained") return [draft(verdict)];
  return [draft({ ...verdict, ...replyOf(report), status: "delivered" }), draft(verdict)];
}

/** Returns the reply of the peer that accepted the message. */
function replyOf(report: DeliveryReport): Partial<Verdict> {
  if (report.kind !== "accepted") return {};
  const { code, enhanced } = report.reply;
  return { smtpCode: code, enhancedCode: enhanced, diagnostic: replyLine(report.reply) };
}

/** Returns the event's details under the name that the interface gives them. */
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
          ...(report.lane === undefined ? {} : { lane: report.lane.name }),
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
