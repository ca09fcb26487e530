import type { RecipientStatus } from "../../core/states.ts";
import { isComplaint, readFeedback } from "../../mail/bounces/arf.ts";
import { readBounce } from "../../mail/bounces/dsn.ts";
import { type ParsedMail, parseMail } from "../../mail/reading/parse.ts";
import type { ReportedRecipient } from "../../mail/bounces/reported.ts";
import { isFor } from "../../mail/bounces/status-fields.ts";

/** A mail that may be a report. */
export interface ReportToRead {
  raw: Uint8Array;
  /** Whom it is about; null where only it can tell: then it is read for a complaint alone. */
  email: string | null;
}

/** What a report says has become of a recipient. */
export interface ReportedEnd {
  status: Extract<RecipientStatus, "bounced" | "failed" | "complained">;
  bounceType: "hard" | "soft" | null;
  category: string;
  finding: Partial<ReportedRecipient>;
}

export interface ReadReport {
  /** Null where it says nothing that changes anything. */
  end: ReportedEnd | null;
  /** What may be the return path of the mail that a complaint is about, best first. */
  returnPaths: readonly string[];
}

/** Of a mail that is no report. */
export const NOTHING_REPORTED: ReadReport = { end: null, returnPaths: [] };

/** Reads a report: a bounce or a complaint. Never throws. */
export async function readReport({ raw, email }: ReportToRead): Promise<ReadReport> {
  const mail = await parseMail(raw);
  const feedback = readFeedback(mail);
  if (feedback === null) return email === null ? NOTHING_REPORTED : bounceOf(mail, raw, email);
  const { feedbackType: category, originalReturnPaths: returnPaths } = feedback;
  return {
    end: isComplaint(feedback) ? { status: "complained", bounceType: null, category, finding: {} } : null,
    returnPaths,
  };
}

function bounceOf(mail: ParsedMail, raw: Uint8Array, email: string): ReadReport {
  const finding = failureOf(readBounce(mail, raw, email)?.recipients ?? [], email);
  if (finding === undefined) return NOTHING_REPORTED;
  const { outcome, category } = finding;
  const end: ReportedEnd =
    outcome === "hard" || outcome === "soft"
      ? { status: "bounced", bounceType: outcome, category, finding }
      : { status: "failed", bounceType: null, category, finding };
  return { end, returnPaths: [] };
}

/**
 * The failure that a report tells of a recipient. One of several that names it is about it alone: the others may be of
 * the alias or list that it is. One that names it nowhere is about it all the same, under a name we do not know.
 */
function failureOf(reported: readonly ReportedRecipient[], email: string): ReportedRecipient | undefined {
  const own = reported.filter(({ recipient, finalRecipient }) =>
    isFor({ originalRecipient: recipient, finalRecipient }, email),
  );
  return (own.length > 0 ? own : reported).find(({ action }) => action === "failed");
}
