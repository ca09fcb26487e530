import { firstChars } from "../../core/text.ts";
import { onlyRecipient, originalHeader } from "./arf.ts";
import { folded, peerReply, readDiagnostic } from "./diagnostic.ts";
import { fromNotice } from "./notice-recipients.ts";
import { isNotice } from "./notice-signs.ts";
import { type NoticeRecipient, noticeRecipients, noticeText, plainlyNamed } from "./notice-text.ts";
import type { ParsedMail } from "../reading/parse.ts";
import { htmlText } from "../text/preview.ts";
import { findHeaderEnd } from "../reading/raw-headers.ts";
import { classByText, isAboutClient, type Refusal, type TextClass } from "./reply-class.ts";
import {
  classOf,
  MAX_DIAGNOSTIC_CHARS,
  type Notice,
  type ReportedRecipient,
  classifiedText,
  firstClassified,
} from "./reported.ts";
import { addressOf, type StatusRecipient, statusRecipients } from "./status-fields.ts";
import { statusText } from "./status-text.ts";
import { storedText } from "../text/stored-text.ts";

export interface DeliveryReportMail {
  recipients: ReportedRecipient[];
}

/**
 * Maximum characters of one recipient's diagnostic that are read for its class. Reading takes time, and a report
 * has many.
 */
const MAX_DIAGNOSTIC_READ = 1024;

const ACTIONS: ReadonlyMap<string, ReportedRecipient["action"]> = new Map([
  ["failed", "failed"],
  ["failure", "failed"],
  ["delayed", "delayed"],
  ["delivered", "delivered"],
  ["deliverable", "delivered"],
  ["relayed", "relayed"],
  ["expanded", "expanded"],
]);

/** Maximum octets that are read as text if the MIME structure of a message is broken. */
const MAX_BROKEN_OCTETS = 64 * 1024;

/**
 * Reads a bounce: a delivery status notification (RFC 3464), or a plain-text notice. Returns null for any other
 * message, such as an automatic reply (RFC 3834).
 * @param concerned the recipient of the message: it is found even if the report names very many
 */
export function readBounce(
  mail: ParsedMail,
  raw: Uint8Array,
  concerned: string | null = null,
): DeliveryReportMail | null {
  const text = bodyText(mail, raw);
  const ownText = noticeText(text);
  const own = ownAddresses(mail);
  const original = originalHeader(mail);
  const originalTo = onlyRecipient(original) ?? recipientBelow(text.slice(ownText.length));
  const isTextNotice = isNotice(mail, ownText, {
    original: original !== null || originalTo !== null,
    named: () => plainlyNamed(ownText, own),
  });
  const statuses = statusRecipients(statusText(mail, text, isTextNotice), concerned);
  if (statuses.length === 0 && !isTextNotice) return null;
  const notice: Notice = {
    text: folded(ownText),
    subject: mail.subject,
    classified: firstClassified([ownText, mail.subject]),
    named: namedIn(ownText, originalTo === null ? mail.subject : "", own),
    originalTo,
  };
  const only = statuses.length === 1 ? onlyNamed(notice) : null;
  const recipients = statuses.map((status) => fromStatus(status, notice, only));
  if (recipients.length === 0) recipients.push(...fromNotice(mail, notice));
  return { recipients };
}

/** Returns the recipients that a notice names: in its text, else in its subject. */
function namedIn(ownText: string, subject: string, own: ReadonlySet<string>): NoticeRecipient[] {
  const named = noticeRecipients(ownText, own);
  return named.length > 0 ? named : noticeRecipients(subject, own);
}

/** Returns the recipient in the header of a message that is quoted as text. */
function recipientBelow(text: string): string | null {
  return addressOf(/^to: ?(.{1,300})$/im.exec(text)?.[1] ?? null);
}

/**
 * Returns the text of a report: its plain text, else its html's text, else its bytes if its MIME structure is broken.
 */
function bodyText({ text, html, attachments }: ParsedMail, raw: Uint8Array): string {
  // The MIME reader does not know `text/plain charset=…` without its semicolon (RFC 2045 §5.1) as text.
  const broken = attachments.find(({ contentType }) => /^text\/plain\s/.test(contentType));
  if (broken !== undefined) return storedText(`${asText(broken.bytes)}\n${text ?? ""}`);
  // A plain part without an address may say only "view this in html".
  if (text !== null && text.trim() !== "")
    return html === null || text.includes("@") ? text : `${text}\n${htmlText(html)}`;
  if (html !== null) return htmlText(html);
  if (attachments.length > 0) return "";
  return storedText(asText(raw.subarray(findHeaderEnd(raw).body)));
}

function asText(bytes: Uint8Array): string {
  return Buffer.from(bytes.subarray(0, MAX_BROKEN_OCTETS)).toString("utf8");
}

/** Returns addresses in a report that cannot be the recipient's. */
function ownAddresses(mail: ParsedMail): Set<string> {
  const own = [...(mail.from === null ? [] : [mail.from]), ...mail.to].map(({ email }) =>
    email.toLowerCase(),
  );
  return new Set(own);
}

/** Returns the recipient of a report about one recipient if its fields have no Internet address (RFC 3464 §2.3.2). */
function onlyNamed({ named, originalTo }: Notice): string | null {
  return originalTo ?? (named.length === 1 ? (named[0]?.address ?? null) : null);
}

function fromStatus(status: StatusRecipient, notice: Notice, only: string | null): ReportedRecipient {
  const recipient = status.originalRecipient ?? status.finalRecipient ?? only;
  const action = actionOf(status);
  const reason = reasonFor(status, notice);
  const shown = status.diagnosticCode ?? (reason === "" ? null : reason);
  const refusal = refusalOf(status, reason, notice);
  return {
    recipient,
    finalRecipient: status.finalRecipient ?? recipient,
    action,
    ...classOf(action, refusal),
    status: refusal.enhanced,
    // OpenSMTPD has no Diagnostic-Code: the reply is in its text only.
    smtpCode: refusal.code ?? readDiagnostic(reason).code,
    diagnosticCode: shown === null ? null : firstChars(shown, MAX_DIAGNOSTIC_CHARS),
    remoteMta: status.remoteMta,
  };
}

/** Returns the refusal that a report quotes: the peer's reply, with what only the reporter says. */
function refusalOf(status: StatusRecipient, reason: string, notice: Notice): Refusal {
  const whole = (status.diagnosticCode ?? "").slice(0, MAX_DIAGNOSTIC_READ);
  const reply = peerReply(whole);
  const { code, enhanced, stage } = readDiagnostic(reply);
  const known = { code, stage: stage ?? readDiagnostic(whole).stage ?? readDiagnostic(reason).stage };
  // Sendmail writes 5.1.1 and "User unknown" for any bare 550.
  if (code !== null && classByText(reply) === null && isAboutClient(reply, code))
    return { ...known, enhanced, text: reply, textClass: null };
  const { text, textClass } = classifiedText([reply, whole, reason], notice);
  return {
    ...known,
    enhanced: specific(enhanced, status.status),
    text,
    textClass: whole === "" ? loose(textClass) : enhanced === null ? firm(textClass) : textClass,
  };
}

/** Sendmail reports any bare 550 as 5.1.1. If only the reporter gives a code, vague words outweigh it. */
function firm(textClass: TextClass | null): TextClass | null {
  return textClass === null ? null : { outcome: textClass.outcome, category: textClass.category };
}

/**
 * Marks a class as vague. Without a diagnostic the text may be about anything, as footers are, so a status that names
 * the mailbox wins.
 */
function loose(textClass: TextClass | null): TextClass | null {
  return textClass === null ? null : { ...textClass, vague: true };
}

/** Returns the notice's text about one recipient of the fields, or "" if it does not name that recipient. */
function reasonFor({ finalRecipient, originalRecipient }: StatusRecipient, { named }: Notice): string {
  const addresses = [finalRecipient, originalRecipient].map((address) => address?.toLowerCase());
  const same = named.find(({ address }) => addresses.includes(address.toLowerCase()));
  return same?.reason.slice(0, MAX_DIAGNOSTIC_READ) ?? "";
}

/**
 * Returns the action (RFC 3464 §2.3.3). If the field is missing or unknown, the status decides whether it is a
 * failure.
 */
function actionOf({ action, status }: StatusRecipient): ReportedRecipient["action"] {
  return ACTIONS.get(action) ?? (status?.startsWith("2.") === true ? "delivered" : "failed");
}

/** Returns the peer's code rather than the reporter's, unless the peer's is X.0.0. */
function specific(own: string | null, reported: string | null): string | null {
  return own !== null && !own.endsWith(".0.0") ? own : (reported ?? own);
}
