import type { EarlyReports } from "../deliver/early-reports.ts";
import { type ReportDeps, type ReportTaken, takeFeedback, takeReport } from "../deliver/report.ts";
import { unsubscribeRecipient } from "../deliver/unsubscribe-recipient.ts";
import { findRecipient } from "../../store/messages/recipients.ts";
import type { Envelope } from "../../smtp/session/envelope.ts";
import type { Inspection } from "../mime/inspect.ts";
import { takeReports, type TakeReportsDeps } from "../reports/take-reports.ts";
import type { InboundTargetInbox } from "./inbound-message.ts";
import type { InboundTarget, RouteDeps } from "./route.ts";

/** The destination of a message that is about a sent one: nothing is stored of it. */
export type ServiceTarget = Extract<InboundTarget, { kind: "bounce" | "feedback" | "unsubscribe" }>;

/** Maximum octets read of a report. The report comes first, then the returned message, which may be large. */
const MAX_REPORT_OCTETS = 256 * 1024;

/** Returns whether a message to that destination is about a sent one. */
export function isForService(target: InboundTarget): target is ServiceTarget {
  return target.kind === "bounce" || target.kind === "feedback" || target.kind === "unsubscribe";
}

/** Returns the same name for all spellings of an address, so that one message is taken once. */
export function reportName(target: ServiceTarget): string {
  return target.kind === "feedback" ? target.kind : `${target.kind} ${target.messageId}.${target.ord}`;
}

/** Takes a report, a complaint, or a message that unsubscribes its recipient. */
export function takeForService(
  { deps: given, earlyReports }: { deps: ReportDeps & RouteDeps; earlyReports: EarlyReports },
  target: ServiceTarget,
  { ip, helo, mailFrom }: Envelope,
  raw: Uint8Array,
): Promise<ReportTaken> {
  if (target.kind === "unsubscribe") return takeUnsubscribe(given, target, mailFrom);
  const report = { raw: raw.subarray(0, MAX_REPORT_OCTETS), session: { ip, helo, mailFrom } };
  // A large message must not hold its memory while it waits.
  const deps = { ...given, earlyReports: raw.length > MAX_REPORT_OCTETS ? undefined : earlyReports };
  return target.kind === "bounce"
    ? takeReport(deps, target.messageId, target.ord, report)
    : takeFeedback(deps, report);
}

/** A program that bounces or answers by itself has an empty return path (RFC 3834 §3.3). It does not unsubscribe. */
async function takeUnsubscribe(
  deps: ReportDeps,
  { messageId, ord }: Extract<InboundTarget, { kind: "unsubscribe" }>,
  mailFrom: string,
): Promise<ReportTaken> {
  const recipient = mailFrom === "" ? null : await findRecipient(deps.db, messageId, ord);
  if (recipient !== null) await unsubscribeRecipient(deps, recipient, { how: "mail" });
  return "taken";
}

/**
 * Takes the DMARC and TLS reports in a message to the mailboxes for them. Returns the targets for which the message is still to be
 * stored: these mailboxes get what is no report, or one about our own names. Null if too many messages wait.
 */
export async function withoutReports(
  deps: TakeReportsDeps,
  targets: readonly InboundTargetInbox[],
  raw: Uint8Array,
  { authentication: { verdict } }: Inspection,
): Promise<readonly InboundTargetInbox[] | null> {
  const others = targets.filter(({ inbox }) => inbox.id !== null || !inbox.takesReports);
  if (others.length === targets.length) return targets;
  const taken = await takeReports(deps, raw, verdict);
  if (taken === "busy") return null;
  return taken === "taken" ? others : targets;
}
