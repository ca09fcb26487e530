import { type HeaderBlock, headerBlock } from "../reading/header-block.ts";
import { mailboxes, type ParsedMail } from "../reading/parse.ts";
import { fieldsOf, fieldValue, firstValue, type RawField } from "../reading/raw-headers.ts";
import { addressOf, MAX_STATUS_CHARS } from "./status-fields.ts";

/** A feedback report: a provider passes on a complaint about a message of ours. */
export interface FeedbackReport {
  /** Lower case: abuse, fraud, not-spam, virus, auth-failure, opt-out, other (RFC 5965 §7.3, RFC 6591). */
  feedbackType: string;
  /**
   * Possible return paths of the message that the complaint is about, best first: the report's field (RFC 5965 §3.2),
   * then those of the message's own header. Providers black out one and leave the other. A forwarded message has
   * several.
   */
  originalReturnPaths: readonly string[];
  original: OriginalMessage;
}

/** The message as a report shows it, apart from its return path. Empty or null: not shown. */
export interface OriginalMessage {
  /** Values of List-Unsubscribe and CFBL-Feedback-ID (RFC 9477). */
  listUnsubscribe: string;
  feedbackId: string;
  messageId: string | null;
  /** Addresses that the report names as the recipient of the message. */
  recipients: readonly string[];
}

/** Most Return-Path fields that are read of one message. */
const MAX_RETURN_PATHS = 10;
/** Maximum number of recipients that are read of one report. */
const MAX_RECIPIENTS = 50;

/** Reports by which a person refuses our mail. `auth-failure` and `not-spam` are not among them. */
const COMPLAINTS: ReadonlySet<string> = new Set([
  "abuse",
  "fraud",
  "virus",
  "opt-out",
  "opt-out-list",
  "other",
]);

/** Returns whether a report is a complaint of its recipient. */
export function isComplaint(report: FeedbackReport): boolean {
  return COMPLAINTS.has(report.feedbackType);
}

/** Reads a feedback report (RFC 5965), or Hotmail's, which has no such part. Returns null for any other message. */
export function readFeedback(mail: ParsedMail): FeedbackReport | null {
  const original = originalHeader(mail);
  const part = mail.attachments.find(({ contentType }) => contentType === "message/feedback-report");
  if (part !== undefined) return fromFields(Buffer.from(part.bytes).toString("latin1"), original);
  const hotmail = original === null ? null : fieldOf(original, "x-hmxmroriginalrecipient");
  if (hotmail === null) return null;
  return {
    feedbackType: "abuse",
    originalReturnPaths: returnPathsOf(original),
    original: originalMessage(original, [hotmail]),
  };
}

function fromFields(text: string, original: HeaderBlock | null): FeedbackReport {
  const fields = fieldsOf(text.slice(0, MAX_STATUS_CHARS));
  const mailFrom = addressOf(firstValue(fields, "original-mail-from"));
  return {
    feedbackType: /^[a-z-]+/.exec(firstValue(fields, "feedback-type")?.toLowerCase() ?? "")?.[0] ?? "other",
    originalReturnPaths: [...(mailFrom === null ? [] : [mailFrom]), ...returnPathsOf(original)],
    original: originalMessage(original, valuesOf(fields, "original-rcpt-to")),
  };
}

function valuesOf(fields: readonly RawField[], name: string): string[] {
  return fields.filter((field) => field.name === name).map(fieldValue);
}

function originalMessage(header: HeaderBlock | null, recipients: readonly string[]): OriginalMessage {
  const value = (name: string) => (header === null ? "" : (fieldOf(header, name) ?? ""));
  return {
    listUnsubscribe: value("list-unsubscribe"),
    feedbackId: value("cfbl-feedback-id").trim(),
    messageId: header?.messageId ?? null,
    recipients: recipients.slice(0, MAX_RECIPIENTS).flatMap((recipient) => addressOf(recipient) ?? []),
  };
}

function returnPathsOf(original: HeaderBlock | null): string[] {
  return (original?.fields ?? [])
    .filter(({ name }) => name.toLowerCase() === "return-path")
    .slice(0, MAX_RETURN_PATHS)
    .flatMap(({ value }) => addressOf(value) ?? []);
}

/** Returns the header of the reported message, from its message/rfc822 or text/rfc822-headers part. */
export function originalHeader(mail: ParsedMail): HeaderBlock | null {
  const part = mail.attachments.find(({ contentType }) =>
    /^(?:message\/(?:rfc822|global|partial)|text\/rfc822-headers?|message\/global-headers)$/.test(
      contentType,
    ),
  );
  return part === undefined ? null : headerBlock(part.bytes);
}

/** Returns the value of the first field of that name, given in lower case. Null if there is none. */
export function fieldOf({ fields }: HeaderBlock, name: string): string | null {
  return fields.find((field) => field.name.toLowerCase() === name)?.value ?? null;
}

/** Returns the recipient of a message that has exactly one. */
export function onlyRecipient(header: HeaderBlock | null): string | null {
  const found = header === null ? [] : mailboxes(fieldOf(header, "to") ?? "");
  return found.length === 1 ? (found[0]?.email ?? null) : null;
}
