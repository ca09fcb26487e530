import { fieldOf, onlyRecipient, originalHeader } from "./arf.ts";
import { peerWords, readDiagnostic } from "./diagnostic.ts";
import { isNotice } from "./notice-signs.ts";
import { type NoticeRecipient, noticeRecipients, noticeText } from "./notice-text.ts";
import type { ParsedMail } from "./parse.ts";
import { htmlText } from "./preview.ts";
import { findHeaderEnd } from "./raw-headers.ts";
import { classByText, classifyGivenUp, type ReplyClass } from "./reply-class.ts";
import { addressOf, MAX_REPORT_RECIPIENTS, type StatusRecipient, statusRecipients } from "./status-fields.ts";
import { storedText } from "./stored-text.ts";

/** What a report says of one recipient. */
export interface ReportedRecipient extends Pick<ReplyClass, "category"> {
  /** Whom the mail was for, as the report names it; null where it names none. */
  recipient: string | null;
  /** Where the mail had got to, as an alias may send it elsewhere. */
  finalRecipient: string | null;
  action: "failed" | "delayed" | "delivered" | "relayed" | "expanded";
  /** What it means; null for an action that is no trouble. */
  outcome: ReplyClass["outcome"] | null;
  /** RFC 3463 code, the peer's own before the reporter's. */
  status: string | null;
  smtpCode: number | null;
  diagnosticCode: string | null;
  remoteMta: string | null;
}

export interface DeliveryReportMail {
  recipients: ReportedRecipient[];
  /** Message-ID of the mail reported on, with angle brackets, where the report has its header. */
  originalMessageId: string | null;
}

const ACTIONS: Readonly<Record<string, ReportedRecipient["action"]>> = {
  failed: "failed",
  failure: "failed",
  delayed: "delayed",
  delivered: "delivered",
  deliverable: "delivered",
  relayed: "relayed",
  expanded: "expanded",
};

/** Characters of a diagnostic that are kept. */
const MAX_DIAGNOSTIC_CHARS = 2000;
/** Octets of a mail with a broken MIME structure that are read as text. */
const MAX_BROKEN_OCTETS = 64 * 1024;

/**
 * Reads a bounce: a delivery status notification (RFC 3464), or a notice in words as many servers send. Null for any
 * other mail, automatic replies (RFC 3834) among them.
 */
export function readBounce(mail: ParsedMail, raw: Uint8Array): DeliveryReportMail | null {
  const text = bodyText(mail, raw);
  const statuses = statusParts(mail, text).flatMap(statusRecipients);
  const words = noticeText(text);
  if (statuses.length === 0 && !isNotice(mail, words)) return null;
  const notice: Notice = {
    words,
    subject: mail.subject,
    named: noticeRecipients(words, ownAddresses(mail)),
    originalTo: addressOf(/^to: (.{1,300})$/im.exec(text.slice(words.length))?.[1] ?? null),
  };
  const recipients = statuses.map((status) => fromStatus(status, notice));
  if (recipients.length === 0) recipients.push(...fromNotice(mail, notice));
  return { recipients, originalMessageId: originalHeader(mail)?.messageId ?? null };
}

/** What a report says to people. */
interface Notice {
  words: string;
  subject: string;
  named: readonly NoticeRecipient[];
  /** Recipient of the mail that came back, where it stands below the notice in the same text. */
  originalTo: string | null;
}

/** The text of a report: its html's where it has no other, its bytes where its MIME structure is broken. */
function bodyText({ text, html, attachments }: ParsedMail, raw: Uint8Array): string {
  if (text !== null && text.trim() !== "") return text;
  if (html !== null) return htmlText(html);
  if (attachments.length > 0) return "";
  const body = raw.subarray(findHeaderEnd(raw).body).subarray(0, MAX_BROKEN_OCTETS);
  return storedText(Buffer.from(body).toString("utf8"));
}

/** The machine-readable parts; some servers put their fields into a part of another type. */
function statusParts({ attachments }: ParsedMail, text: string): string[] {
  const parts = attachments.filter(({ contentType }) =>
    /^message\/(?:global-)?delivery-status$/.test(contentType),
  );
  if (parts.length > 0) return parts.map(({ bytes }) => Buffer.from(bytes).toString("latin1"));
  const begin = /^(?:final-recipient|original-recipient|reporting-mta):/im.exec(text)?.index;
  if (begin === undefined || !/^action: *(?:failed|delayed)/im.test(text)) return [];
  return [noticeText(text.slice(begin))];
}

/** Addresses in a report that are not who the mail was for. */
function ownAddresses(mail: ParsedMail): Set<string> {
  const own = [...(mail.from === null ? [] : [mail.from]), ...mail.to].map(({ email }) =>
    email.toLowerCase(),
  );
  return new Set(own);
}

function fromStatus(status: StatusRecipient, notice: Notice): ReportedRecipient {
  const recipient = status.originalRecipient ?? status.finalRecipient;
  const action = ACTIONS[status.action] ?? "failed";
  const addresses = [status.finalRecipient, status.originalRecipient].map((address) =>
    address?.toLowerCase(),
  );
  const same = notice.named.find(({ address }) => addresses.includes(address.toLowerCase()))?.reason ?? "";
  const diagnostic = peerWords(status.diagnosticCode ?? "");
  const read = readDiagnostic(diagnostic);
  const enhanced = specific(read.enhanced, status.status);
  const text = tellingText([diagnostic, same, notice.words, notice.subject]) ?? diagnostic;
  return {
    recipient,
    finalRecipient: status.finalRecipient ?? recipient,
    action,
    ...classOf(action, { code: read.code, enhanced, stage: read.stage ?? readDiagnostic(same).stage, text }),
    status: enhanced,
    smtpCode: read.code,
    diagnosticCode: status.diagnosticCode?.slice(0, MAX_DIAGNOSTIC_CHARS) ?? null,
    remoteMta: status.remoteMta,
  };
}

/** The first text that tells a class: the machine's words, what the notice says of the recipient, all of it, its subject. */
function tellingText(texts: readonly string[]): string | undefined {
  return texts.find((text) => classByText(text) !== null);
}

/** The peer's own code over the reporter's, unless it is the one that says nothing. */
function specific(own: string | null, reported: string | null): string | null {
  return own !== null && !own.endsWith(".0.0") ? own : (reported ?? own);
}

/** The recipients of a notice in words: those that its X-Failed-Recipients names, else those in the text. */
function fromNotice(mail: ParsedMail, notice: Notice): ReportedRecipient[] {
  const header = (fieldOf(mail, "x-failed-recipients") ?? "")
    .split(",")
    .flatMap((part) => addressOf(part) ?? []);
  if (header.length > 0)
    return header.slice(0, MAX_REPORT_RECIPIENTS).map((address) => {
      const named = notice.named.find(
        (candidate) => candidate.address.toLowerCase() === address.toLowerCase(),
      );
      return fromReason(address, address, named?.reason ?? notice.words, notice);
    });
  if (notice.named.length > 0)
    return notice.named.map(({ address, expandedFrom, reason }) =>
      fromReason(expandedFrom ?? address, address, reason, notice),
    );
  const only = onlyRecipient(originalHeader(mail)) ?? notice.originalTo;
  return [fromReason(only, only, notice.words, notice)];
}

function fromReason(
  recipient: string | null,
  finalRecipient: string | null,
  reason: string,
  notice: Notice,
): ReportedRecipient {
  const text = peerWords(tellingText([reason, notice.words, notice.subject]) ?? reason);
  const read = readDiagnostic(text);
  const action =
    DELAYED.test(`${notice.subject} ${notice.words}`) && !FINAL.test(notice.words) ? "delayed" : "failed";
  return {
    recipient,
    finalRecipient,
    action,
    ...classOf(action, { ...read, text }),
    status: read.enhanced,
    smtpCode: read.code,
    diagnosticCode: reason.replace(/\s+/g, " ").trim().slice(0, MAX_DIAGNOSTIC_CHARS) || null,
    remoteMta: null,
  };
}

/** A warning that a mail still waits, and words by which a notice that also has them is final. */
const DELAYED =
  /\b(?:delayed|delay reason|warning[: ]|still trying|will (?:be|keep) (?:re)?try|not yet been delivered|delivery attempts will continue)/i;
const FINAL = /permanent(?:ly)? |given up|giving up|gave up|could not be delivered|failed/i;

type Refusal = Parameters<typeof classifyGivenUp>[0];

function classOf(
  action: ReportedRecipient["action"],
  refusal: Refusal,
): Pick<ReportedRecipient, "outcome" | "category"> {
  if (action === "failed") return classifyGivenUp(refusal);
  return { category: classifyGivenUp(refusal).category, outcome: action === "delayed" ? "deferred" : null };
}
