import type { RecipientStatus } from "../../core/messages/states.ts";
import { isComplaint, type OriginalMessage, readFeedback } from "../../mail/bounces/arf.ts";
import { readBounce } from "../../mail/bounces/dsn.ts";
import { type ParsedMail, parseMail } from "../../mail/reading/parse.ts";
import type { ReportedRecipient } from "../../mail/bounces/reported.ts";
import type { AuthEnvelope } from "../../mail/auth/authenticate.ts";
import { provenAuthor } from "../../mail/auth/proven-from.ts";
import { checkSender, type InspectDeps } from "./inspect.ts";
import { isFor } from "../../mail/bounces/status-fields.ts";

/** A message that may be a report. */
export interface ReportToRead {
  raw: Uint8Array;
  /** The SMTP session that brought it. If null, its sender is not proven. */
  session: AuthEnvelope | null;
  /** The address that it is about. If null, only the report can name it, and only a complaint is read. */
  email: string | null;
}

/** The outcome of a recipient that a report or a relay states. */
export interface ReportedEnd {
  status: Extract<RecipientStatus, "delivered" | "bounced" | "failed" | "complained">;
  bounceType: "hard" | "soft" | null;
  category: string;
  finding: Partial<ReportedRecipient>;
  /** True for a complaint whose sender is proven: SPF or DKIM passes for the domain of its From. */
  authenticated: boolean;
}

export interface ReadReport {
  /** Null if it changes nothing. */
  end: ReportedEnd | null;
  /** Possible return paths of the message that a complaint is about, best first. */
  returnPaths: readonly string[];
  /** The message that a complaint is about; null if it is none. */
  original: OriginalMessage | null;
}

/** The result for a message that is no report. */
export const NOTHING_REPORTED: ReadReport = { end: null, returnPaths: [], original: null };

/** Reads a report: a bounce or a complaint. Never throws. */
export async function readReport(
  deps: InspectDeps,
  { raw, session, email }: ReportToRead,
): Promise<ReadReport> {
  const mail = await parseMail(raw);
  const feedback = readFeedback(mail);
  if (feedback === null) return email === null ? NOTHING_REPORTED : bounceOf(mail, raw, email);
  const { feedbackType: category, originalReturnPaths: returnPaths, original } = feedback;
  if (!isComplaint(feedback)) return { end: null, returnPaths, original };
  const authenticated = await isProven(deps, session, raw);
  const end: ReportedEnd = { status: "complained", bounceType: null, category, finding: {}, authenticated };
  return { end, returnPaths, original };
}

/** Returns whether the sender is proven. If a report was cut short its signature cannot pass, but SPF may. */
async function isProven(deps: InspectDeps, session: AuthEnvelope | null, raw: Uint8Array): Promise<boolean> {
  if (session === null) return false;
  try {
    return provenAuthor(raw, (await checkSender(deps, { raw, session })).verdict) !== null;
  } catch {
    // If the check fails, nothing is proven. The recipient is suppressed all the same.
    return false;
  }
}

function bounceOf(mail: ParsedMail, raw: Uint8Array, email: string): ReadReport {
  const finding = failureOf(readBounce(mail, raw, email)?.recipients ?? [], email);
  if (finding === undefined) return NOTHING_REPORTED;
  const { outcome, category } = finding;
  const end: ReportedEnd =
    outcome === "hard" || outcome === "soft"
      ? { status: "bounced", bounceType: outcome, category, finding, authenticated: false }
      : { status: "failed", bounceType: null, category, finding, authenticated: false };
  return { end, returnPaths: [], original: null };
}

/**
 * Returns the failure that a report states for a recipient. If it lists several, only the entry with its address
 * counts, because the others may be members of an alias or list. If none has its address, the report is still about it,
 * under a name that we do not know.
 */
function failureOf(reported: readonly ReportedRecipient[], email: string): ReportedRecipient | undefined {
  const own = reported.filter(({ recipient, finalRecipient }) =>
    isFor({ originalRecipient: recipient, finalRecipient }, email),
  );
  return (own.length > 0 ? own : reported).find(({ action }) => action === "failed");
}
