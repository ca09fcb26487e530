import { type HeaderBlock, headerBlock } from "../reading/header-block.ts";
import { mailboxes, type ParsedMail } from "../reading/parse.ts";
import { fieldsOf, firstValue } from "../reading/raw-headers.ts";
import { addressOf, MAX_STATUS_CHARS } from "./status-fields.ts";

/** A feedback report: somebody told their provider something of a mail of ours. */
export interface FeedbackReport {
  /** Lower case: abuse, fraud, not-spam, virus, auth-failure, opt-out, other (RFC 5965 §7.3, RFC 6591). */
  feedbackType: string;
  /**
   * What may be the return path of the mail complained about, best first: the report's field (RFC 5965 §3.2), then those of
   * its own header. Providers black out the one and leave the other, and a mail that was forwarded has had several.
   */
  originalReturnPaths: readonly string[];
}

/** Return-Path fields of one mail that are looked at. */
const MAX_RETURN_PATHS = 10;

/** Reports by which a person refuses our mail. `auth-failure` and `not-spam` are none. */
const COMPLAINTS: ReadonlySet<string> = new Set([
  "abuse",
  "fraud",
  "virus",
  "opt-out",
  "opt-out-list",
  "other",
]);

/** Whether a report is a complaint of its recipient. */
export function isComplaint(report: FeedbackReport): boolean {
  return COMPLAINTS.has(report.feedbackType);
}

/** Reads a feedback report (RFC 5965), and Hotmail's, which has none of its parts; null for any other mail. */
export function readFeedback(mail: ParsedMail): FeedbackReport | null {
  const original = originalHeader(mail);
  const part = mail.attachments.find(({ contentType }) => contentType === "message/feedback-report");
  if (part !== undefined) return fromFields(Buffer.from(part.bytes).toString("latin1"), original);
  const hotmail = original === null ? null : fieldOf(original, "x-hmxmroriginalrecipient");
  if (hotmail === null) return null;
  return { feedbackType: "abuse", originalReturnPaths: returnPathsOf(original) };
}

function fromFields(text: string, original: HeaderBlock | null): FeedbackReport {
  const fields = fieldsOf(text.slice(0, MAX_STATUS_CHARS));
  const mailFrom = addressOf(firstValue(fields, "original-mail-from"));
  return {
    feedbackType: /^[a-z-]+/.exec(firstValue(fields, "feedback-type")?.toLowerCase() ?? "")?.[0] ?? "other",
    originalReturnPaths: [...(mailFrom === null ? [] : [mailFrom]), ...returnPathsOf(original)],
  };
}

function returnPathsOf(original: HeaderBlock | null): string[] {
  return (original?.fields ?? [])
    .filter(({ name }) => name.toLowerCase() === "return-path")
    .slice(0, MAX_RETURN_PATHS)
    .flatMap(({ value }) => addressOf(value) ?? []);
}

/** The header of the mail that a report is about, out of its message/rfc822 or text/rfc822-headers part. */
export function originalHeader(mail: ParsedMail): HeaderBlock | null {
  const part = mail.attachments.find(({ contentType }) =>
    /^(?:message\/(?:rfc822|global|partial)|text\/rfc822-headers?|message\/global-headers)$/.test(
      contentType,
    ),
  );
  return part === undefined ? null : headerBlock(part.bytes);
}

/** The value of the first field of that name, in lower case; null where there is none. */
export function fieldOf({ fields }: HeaderBlock, name: string): string | null {
  return fields.find((field) => field.name.toLowerCase() === name)?.value ?? null;
}

/** The recipient of a mail that has one only. */
export function onlyRecipient(header: HeaderBlock | null): string | null {
  const found = header === null ? [] : mailboxes(fieldOf(header, "to") ?? "");
  return found.length === 1 ? (found[0]?.email ?? null) : null;
}
