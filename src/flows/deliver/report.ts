import { addressKey } from "../../core/addresses.ts";
import { EVENT_OF_STATUS } from "../../core/messages/events.ts";
import { canMove } from "../../core/messages/states.ts";
import { log } from "../../log.ts";
import type { AuthEnvelope } from "../../mail/auth/authenticate.ts";
import type { Statement } from "../../store/engine/client.ts";
import { reportGuard, reportRecipient, rollUpMessage, type Settlement } from "../../store/messages/outbox.ts";
import type { ReputationLimits } from "../../store/projects/reputation.ts";
import { findRecipient, type Recipient } from "../../store/messages/recipients.ts";
import { hint } from "../../queue/hint.ts";
import { announce } from "../webhooks/announce.ts";
import type { Inspect } from "../mime/reading-tasks.ts";
import { type ComplaintKeys, complainedOf, namedRecipient } from "../mime/complained-of.ts";
import type { EarlyReports } from "./early-reports.ts";
import type { ReportedEnd } from "../mime/read-report.ts";
import { countOutcome, logSuspension } from "./reputation.ts";
import { stopForwarding, suppressFor } from "./suppression.ts";
import type { Outbox } from "../outbox.ts";

export interface ReportDeps extends Outbox {
  inspect: Inspect;
  /** Limits that suspend a sender. */
  suspension: ReputationLimits;
  /** If left out, an early report is deferred at once. */
  earlyReports?: EarlyReports | undefined;
}

/** A report as it arrived, and the SMTP session that brought it. Without a session its sender is not proven. */
export interface ArrivedReport {
  raw: Uint8Array;
  session: AuthEnvelope | null;
}

/** `early`: the recipient is being delivered to now. `busy`: too much mail waits to be read. The caller defers both. */
export type ReportTaken = "taken" | "early" | "busy";

/**
 * Takes a message to the bounce address of one recipient. A bounce or a complaint changes that recipient. Anything else
 * changes nothing, for example an automatic reply or a notice of delay. The token in the address names the recipient,
 * whatever the report names.
 */
export async function takeReport(
  deps: ReportDeps,
  messageId: string,
  ord: number,
  { raw, session }: ArrivedReport,
): Promise<ReportTaken> {
  const recipient = await namedRecipient(deps.db, { messageId, ord });
  if (recipient === null) return "taken";
  const report = await deps.inspect({ kind: "report", raw, session, email: recipient.email });
  return report === null ? "busy" : takeEnd(deps, recipient, report.end);
}

/**
 * Takes a message to the address for complaints. A feedback report is about the recipient that the reported message names
 * (`complainedOf`), and no other. Without a sign of ours it changes nothing.
 */
export async function takeFeedback(
  deps: ReportDeps & ComplaintKeys,
  { raw, session }: ArrivedReport,
): Promise<ReportTaken> {
  const report = await deps.inspect({ kind: "report", raw, session, email: null });
  if (report === null) return "busy";
  const recipient = await complainedOf(deps, report);
  if (recipient !== null) return takeEnd(deps, recipient, report.end);
  // The operator has asked a provider for these reports, and should see that they name no recipient of ours.
  if (report.end !== null)
    log("send").info("a complaint names no message of this service", { type: report.end.category });
  return "taken";
}

/** The services that take what became of a recipient. */
export type EndDeps = Omit<ReportDeps, "inspect">;

/**
 * Maximum number of reads of a recipient that keeps changing before the write, as with several reports at once. After
 * that the report is deferred.
 */
const MAX_READS = 5;

/** Takes what became of a recipient. It changes nothing if that cannot follow the recipient's state. */
export async function takeEnd(
  deps: EndDeps,
  found: Recipient,
  end: ReportedEnd | null,
): Promise<ReportTaken> {
  if (end === null) return "taken";
  const { messageId, ord } = found;
  const taken = await takeNow(deps, found, end);
  if (taken !== "early" || deps.earlyReports === undefined) return taken;
  return deps.earlyReports.wait<ReportTaken>("early", async () =>
    takeNow(deps, await findRecipient(deps.db, messageId, ord), end),
  );
}

async function takeNow(deps: EndDeps, found: Recipient | null, end: ReportedEnd): Promise<ReportTaken> {
  let recipient = found;
  for (let look = 0; look < MAX_READS; look++) {
    if (recipient === null) return "taken";
    const { messageId, ord } = recipient;
    // After a crash between the peer's 250 and our commit, the recipient is queued again.
    if (recipient.status === "sending" || recipient.status === "queued") return "early";
    if (!canMove(recipient.status, end.status)) return "taken";
    if (await settleReport(deps, recipient, end)) return "taken";
    recipient = await findRecipient(deps.db, messageId, ord);
  }
  return "early";
}

/**
 * Settles a report in one write, if the recipient has not changed since it was read, so that counts and the order of
 * events are right. Returns false if it has, and nothing is written.
 */
async function settleReport(deps: EndDeps, recipient: Recipient, end: ReportedEnd): Promise<boolean> {
  const now = deps.clock.now();
  const { messageId, senderId, email } = recipient;
  const guard = reportGuard(recipient);
  const draft = { messageId, type: EVENT_OF_STATUS[end.status], email, data: eventData(end) };
  const announced = await announce(deps, senderId, [draft], guard);
  const suppression: Statement[] =
    end.status === "failed" || end.status === "delivered"
      ? []
      : [
          suppressFor(
            { senderId, email: addressKey(email), messageId, bounceType: end.bounceType },
            guard,
            now,
          ),
        ];
  const complainant = end.authenticated ? addressKey(email) : null;
  const outcome = {
    recipient,
    status: end.status,
    mx: recipient.mx,
    // It was counted when the relay took it.
    uncounted: end.status === "delivered",
    excused: end.bounceType === "soft",
    complainant,
    guard,
  };
  const counted = countOutcome(outcome, deps.suspension, now);
  const before = [...counted, ...announced.statements, ...suppression];
  const written = await deps.db.write([
    ...before,
    reportRecipient(recipient, settlementOf(recipient, end), now),
    rollUpMessage(messageId, null),
    ...(await stopForwarding(deps.db, recipient, end.status, now)),
  ]);
  if (written[before.length]?.changes !== 1) return false;
  logSuspension(senderId, counted, written);
  hint(deps.queue, "push", announced.pushes);
  return true;
}

function eventData({ status, bounceType, category, finding }: ReportedEnd): Record<string, unknown> {
  const {
    smtpCode = null,
    status: enhancedCode = null,
    diagnosticCode: diagnostic = null,
    remoteMta: mx = null,
  } = finding;
  if (status === "complained") return { complaint: { feedbackType: category } };
  if (status === "delivered") return { delivery: { mx, tls: null, smtpCode, response: diagnostic } };
  const details = { category, smtpCode, enhancedCode, diagnostic, mx };
  return status === "bounced"
    ? { bounce: { type: bounceType, reason: category, ...details } }
    : { failed: { reason: category, ...details } };
}

function settlementOf(recipient: Recipient, end: ReportedEnd): Settlement {
  const { smtpCode, status: enhancedCode, diagnosticCode, remoteMta } = end.finding;
  return {
    status: end.status,
    reason: end.status === "delivered" ? null : end.category,
    dueAt: null,
    mx: remoteMta ?? recipient.mx,
    tls: recipient.tls,
    // The reply of our own peer at delivery does not say why the message came back.
    ...(end.status === "complained"
      ? {
          smtpCode: recipient.smtpCode,
          enhancedCode: recipient.enhancedCode,
          diagnostic: recipient.diagnostic,
        }
      : {
          smtpCode: smtpCode ?? null,
          enhancedCode: enhancedCode ?? null,
          diagnostic: diagnosticCode ?? null,
        }),
  };
}
