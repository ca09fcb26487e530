import { addressKey } from "../../core/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import { EVENT_OF_STATUS } from "../../core/events.ts";
import { canMove } from "../../core/states.ts";
import { log } from "../../log.ts";
import { rewrittenVerpToken } from "../../mail/verp.ts";
import type { Queue } from "../../queue/port.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import { reportGuard, reportRecipient, rollUpMessage, type Settlement } from "../../store/outbox.ts";
import { findRecipient, type Recipient } from "../../store/recipients.ts";
import { hint } from "../hint.ts";
import { announce } from "../notify/announce.ts";
import type { Inspect } from "../readings.ts";
import { recipientOf } from "../recipient-token.ts";
import { sureOf } from "../sure-of.ts";
import type { EarlyReports } from "./early-reports.ts";
import type { ReportedEnd } from "./read-report.ts";
import { countOutcome, tellSuspension } from "./reputation.ts";
import { suppressFor } from "./suppression.ts";

export interface ReportDeps {
  db: Db;
  clock: Clock;
  queue: Queue;
  inspect: Inspect;
  /** Left out: a report that comes early is sent back at once. */
  earlyReports?: EarlyReports | undefined;
}

/** `early`: the recipient is being delivered to just now. `busy`: too much mail waits to be read. Bring it again. */
export type ReportTaken = "taken" | "early" | "busy";

/**
 * Takes a mail that came to the bounce address of one recipient: a bounce or a complaint moves that recipient on,
 * anything else (an automatic reply, a notice of delay) changes nothing. The token in the address says whom it
 * concerns, whatever the report names.
 */
export async function takeReport(
  deps: ReportDeps,
  messageId: string,
  ord: number,
  raw: Uint8Array,
): Promise<ReportTaken> {
  const recipient = await namedRecipient(deps.db, messageId, ord);
  if (recipient === null) return "taken";
  const report = await deps.inspect({ kind: "report", raw, email: recipient.email });
  return report === null ? "busy" : takeEnd(deps, recipient, report.end);
}

/**
 * Takes a mail that came to the address for complaints: a feedback report is about the recipient whom the return path
 * of the mail reported on names, and no other. Without a token of ours it changes nothing.
 */
export async function takeFeedback(
  deps: ReportDeps & { verpKey: Uint8Array },
  raw: Uint8Array,
): Promise<ReportTaken> {
  const report = await deps.inspect({ kind: "report", raw, email: null });
  if (report === null) return "busy";
  const recipient = await firstNamed(deps, report.returnPaths);
  if (recipient !== null) return takeEnd(deps, recipient, report.end);
  // Whoever has asked a provider for these reports is to see that they name nobody.
  if (report.end !== null)
    log("send").info("a complaint names no mail of ours", { type: report.end.category });
  return "taken";
}

/** The recipient that a token of ours names: a report on one that is not there is forgotten. */
function namedRecipient(db: Db, messageId: string, ord: number): Promise<Recipient | null> {
  return sureOf(
    db,
    () => findRecipient(db, messageId, ord),
    (found) => found === null,
  );
}

/** The recipient whom the first of the paths with a token of ours names. */
async function firstNamed(
  { db, verpKey }: { db: Db; verpKey: Uint8Array },
  paths: readonly string[],
): Promise<Recipient | null> {
  for (const path of paths) {
    const token = rewrittenVerpToken(path);
    const named = token === null ? null : recipientOf(verpKey, token);
    if (named !== null) return namedRecipient(db, named.messageId, named.ord);
  }
  return null;
}

/** Looks at a recipient that moves on between look and write, as at several reports at once; then it is left for later. */
const MAX_LOOKS = 5;

async function takeEnd(deps: ReportDeps, found: Recipient, end: ReportedEnd | null): Promise<ReportTaken> {
  if (end === null) return "taken";
  const { messageId, ord } = found;
  const taken = await takeNow(deps, found, end);
  if (taken !== "early" || deps.earlyReports === undefined) return taken;
  return deps.earlyReports.wait<ReportTaken>("early", async () =>
    takeNow(deps, await findRecipient(deps.db, messageId, ord), end),
  );
}

async function takeNow(deps: ReportDeps, found: Recipient | null, end: ReportedEnd): Promise<ReportTaken> {
  let recipient = found;
  for (let look = 0; look < MAX_LOOKS; look++) {
    if (recipient === null) return "taken";
    const { messageId, ord } = recipient;
    // After a crash between the peer's 250 and our commit it waits in the queue again.
    if (recipient.status === "sending" || recipient.status === "queued") return "early";
    if (!canMove(recipient.status, end.status)) return "taken";
    if (await settleReport(deps, recipient, end)) return "taken";
    recipient = await findRecipient(deps.db, messageId, ord);
  }
  return "early";
}

/**
 * One write, all of it only while the recipient stands where it was read: what is counted depends on that, and its events
 * are to be told in the order in which it moved. False: it has moved meanwhile, and nothing is written.
 */
async function settleReport(deps: ReportDeps, recipient: Recipient, end: ReportedEnd): Promise<boolean> {
  const now = deps.clock.now();
  const { messageId, senderId, email } = recipient;
  const guard = reportGuard(recipient);
  const happening = { messageId, type: EVENT_OF_STATUS[end.status], email, data: eventData(end) };
  const announced = await announce(deps, senderId, [happening], guard);
  const suppression: Statement[] =
    end.status === "failed"
      ? []
      : [
          suppressFor(
            { senderId, email: addressKey(email), messageId, bounceType: end.bounceType },
            guard,
            now,
          ),
        ];
  const counted = countOutcome({ recipient, status: end.status, uncounted: false, guard }, now);
  const before = [...counted, ...announced.statements, ...suppression];
  const written = await deps.db.write([
    ...before,
    reportRecipient(recipient, settlementOf(recipient, end), now),
    rollUpMessage(messageId, null),
  ]);
  if (written[before.length]?.changes !== 1) return false;
  tellSuspension(senderId, counted, written);
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
  const details = { category, smtpCode, enhancedCode, diagnostic, mx };
  return status === "bounced"
    ? { bounce: { type: bounceType, reason: category, ...details } }
    : { failed: { reason: category, ...details } };
}

function settlementOf(recipient: Recipient, end: ReportedEnd): Settlement {
  const { smtpCode, status: enhancedCode, diagnosticCode, remoteMta } = end.finding;
  return {
    status: end.status,
    reason: end.category,
    dueAt: null,
    mx: remoteMta ?? recipient.mx,
    tls: recipient.tls,
    // What our own peer said when it took the mail is no word on why it came back.
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
