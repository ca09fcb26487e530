import { firstChars } from "../../core/first-chars.ts";
import { onlyRecipient, originalHeader } from "./arf.ts";
import { peerWords, readDiagnostic } from "./diagnostic.ts";
import { fromNotice } from "./notice-recipients.ts";
import { isNotice } from "./notice-signs.ts";
import { type NoticeRecipient, noticeRecipients, noticeText, plainlyNamed } from "./notice-text.ts";
import type { ParsedMail } from "../reading/parse.ts";
import { htmlText } from "../reading/preview.ts";
import { findHeaderEnd } from "../reading/raw-headers.ts";
import type { TextClass } from "./reply-class.ts";
import {
  classOf,
  MAX_DIAGNOSTIC_CHARS,
  type Notice,
  type ReportedRecipient,
  tellingText,
  toldBy,
} from "./reported.ts";
import { addressOf, type StatusRecipient, statusRecipients } from "./status-fields.ts";
import { statusText } from "./status-text.ts";
import { storedText } from "../stored-text.ts";

/** A bounce. */
export interface DeliveryReportMail {
  recipients: ReportedRecipient[];
}

/** Characters of one recipient's diagnostic that are read for its class: reading takes time, and a report has many. */
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

/** Octets of a mail with a broken MIME structure that are read as text. */
const MAX_BROKEN_OCTETS = 64 * 1024;

/**
 * Reads a bounce: a delivery status notification (RFC 3464), or a notice in words as many servers send. Null for any
 * other mail, automatic replies (RFC 3834) among them.
 * @param concerned whom the mail was for: found among however many the report names
 */
export function readBounce(
  mail: ParsedMail,
  raw: Uint8Array,
  concerned: string | null = null,
): DeliveryReportMail | null {
  const text = bodyText(mail, raw);
  const words = noticeText(text);
  const own = ownAddresses(mail);
  const original = originalHeader(mail);
  const originalTo = onlyRecipient(original) ?? recipientBelow(text.slice(words.length));
  const told = isNotice(mail, words, {
    original: original !== null || originalTo !== null,
    named: () => plainlyNamed(words, own),
  });
  const statuses = statusRecipients(statusText(mail, text, told), concerned);
  if (statuses.length === 0 && !told) return null;
  const notice: Notice = {
    words,
    subject: mail.subject,
    told: toldBy([words, mail.subject]),
    named: namedIn(words, originalTo === null ? mail.subject : "", own),
    originalTo,
  };
  const only = statuses.length === 1 ? onlyNamed(notice) : null;
  const recipients = statuses.map((status) => fromStatus(status, notice, only));
  if (recipients.length === 0) recipients.push(...fromNotice(mail, notice));
  return { recipients };
}

/** Whom a notice names; in its subject where its text names nobody. */
function namedIn(words: string, subject: string, own: ReadonlySet<string>): NoticeRecipient[] {
  const named = noticeRecipients(words, own);
  return named.length > 0 ? named : noticeRecipients(subject, own);
}

/** The recipient in the header of a mail that came back as text. */
function recipientBelow(text: string): string | null {
  return addressOf(/^to: ?(.{1,300})$/im.exec(text)?.[1] ?? null);
}

/** The text of a report: its html's where it has no other, its bytes where its MIME structure is broken. */
function bodyText({ text, html, attachments }: ParsedMail, raw: Uint8Array): string {
  // `text/plain charset=…` without its semicolon (RFC 2045 §5.1) is text that the MIME reader did not know.
  const broken = attachments.find(({ contentType }) => /^text\/plain\s/.test(contentType));
  if (broken !== undefined) return storedText(`${asText(broken.bytes)}\n${text ?? ""}`);
  // A text that names nobody may be no more than "view this in html".
  if (text !== null && text.trim() !== "")
    return html === null || text.includes("@") ? text : `${text}\n${htmlText(html)}`;
  if (html !== null) return htmlText(html);
  if (attachments.length > 0) return "";
  return storedText(asText(raw.subarray(findHeaderEnd(raw).body)));
}

function asText(bytes: Uint8Array): string {
  return Buffer.from(bytes.subarray(0, MAX_BROKEN_OCTETS)).toString("utf8");
}

/** Addresses in a report that are not who the mail was for. */
function ownAddresses(mail: ParsedMail): Set<string> {
  const own = [...(mail.from === null ? [] : [mail.from]), ...mail.to].map(({ email }) =>
    email.toLowerCase(),
  );
  return new Set(own);
}

/** Whom a report of one recipient is about, where its fields give no address of the Internet (RFC 3464 §2.3.2). */
function onlyNamed({ named, originalTo }: Notice): string | null {
  return originalTo ?? (named.length === 1 ? (named[0]?.address ?? null) : null);
}

function fromStatus(status: StatusRecipient, notice: Notice, only: string | null): ReportedRecipient {
  const recipient = status.originalRecipient ?? status.finalRecipient ?? only;
  const action = actionOf(status);
  const whole = (status.diagnosticCode ?? "").slice(0, MAX_DIAGNOSTIC_READ);
  const same = reasonFor(status, notice);
  const shown = status.diagnosticCode ?? (same === "" ? null : same);
  const diagnostic = peerWords(whole);
  const read = readDiagnostic(diagnostic);
  const stage = read.stage ?? readDiagnostic(whole).stage ?? readDiagnostic(same).stage;
  const enhanced = specific(read.enhanced, status.status);
  const said = tellingText([diagnostic, whole, same], notice);
  // Sendmail reports any bare 550 as 5.1.1: a code that is the reporter's alone gives way to vague words too.
  const told = whole === "" ? loose(said.told) : read.enhanced === null ? firm(said.told) : said.told;
  return {
    recipient,
    finalRecipient: status.finalRecipient ?? recipient,
    action,
    ...classOf(action, { code: read.code, enhanced, stage, text: said.text, told }),
    status: enhanced,
    // OpenSMTPD has no Diagnostic-Code: the reply stands in its words alone.
    smtpCode: read.code ?? readDiagnostic(same).code,
    diagnosticCode: shown === null ? null : firstChars(shown, MAX_DIAGNOSTIC_CHARS),
    remoteMta: status.remoteMta,
  };
}

function firm(told: TextClass | null): TextClass | null {
  return told === null ? null : { outcome: told.outcome, category: told.category };
}

/** Where a report has no diagnostic, its words may be of anything, as footers are: a status that names the mailbox wins. */
function loose(told: TextClass | null): TextClass | null {
  return told === null ? null : { ...told, vague: true };
}

/** What the words of a report say of one recipient of its fields; "" where they do not name it. */
function reasonFor({ finalRecipient, originalRecipient }: StatusRecipient, { named }: Notice): string {
  const addresses = [finalRecipient, originalRecipient].map((address) => address?.toLowerCase());
  const same = named.find(({ address }) => addresses.includes(address.toLowerCase()));
  return same?.reason.slice(0, MAX_DIAGNOSTIC_READ) ?? "";
}

/** RFC 3464 §2.3.3; where the field is missing or has another word, the status tells whether it is a failure. */
function actionOf({ action, status }: StatusRecipient): ReportedRecipient["action"] {
  return ACTIONS.get(action) ?? (status?.startsWith("2.") === true ? "delivered" : "failed");
}

/** The peer's own code over the reporter's, unless it is the one that says nothing. */
function specific(own: string | null, reported: string | null): string | null {
  return own !== null && !own.endsWith(".0.0") ? own : (reported ?? own);
}
