import { fieldOf } from "./arf.ts";
import { folded } from "./diagnostic.ts";
import { ANSWER, makes } from "./notice-languages.ts";
import {
  AGGREGATE,
  DAEMON,
  MAILER_TEXT,
  NEUTRAL_SUBJECT,
  PROGRAM_TEXT,
  ROBOT,
  ROBOT_NAME,
  SUCCESS,
} from "./notice-patterns.ts";
import type { HeaderBlock } from "../reading/header-block.ts";
import type { ParsedMail } from "../reading/parse.ts";
import { classByText } from "./reply-class.ts";

/** Maximum characters of a subject that are searched for signs of a failure. */
const MAX_SUBJECT_CHARS = 500;
/** Maximum characters of a body that are searched for signs of a failure. */
const MAX_SIGN_CHARS = 8192;

/** The parts of the returned message that a notice shows. */
export interface Shown {
  /** True if the notice has the returned message, or its header. */
  original: boolean;
  /** Returns the recipients that it names on a separate line, not within a sentence. */
  named(): readonly string[];
}

/**
 * Returns whether a message is a plain-text notice of a failed delivery. It needs two of three signs: its sender, its
 * subject and its text. So a message that only mentions bounces does not count. An unknown program must also show the
 * returned message or the recipient, because shops write about deliveries too. Any other sender must show the
 * returned message, because people paste notices. An automatic reply is never a notice.
 */
export function isNotice(mail: ParsedMail, ownText: string, shown: Shown): boolean {
  const text = folded(ownText.slice(0, MAX_SIGN_CHARS));
  if (isReceipt(mail)) return isRefusal(mail, text);
  const signs = signsOf(mail, text);
  const { daemon, failureSubject, failureText } = signs;
  if (isAutoReply(mail, isMailers(signs)) || SUCCESS.test(signs.line) || AGGREGATE.test(signs.line))
    return false;
  const named = (): boolean => shown.named().length > 0;
  // Domino and others copy the fields of the returned message.
  if (isBulk(mail))
    return (
      daemon &&
      failureSubject &&
      failureText &&
      !signs.answer &&
      (shown.original || (named() && isOfRecipient(text)))
    );
  if (daemon && !signs.answer)
    return failureSubject || failureText || (isOfRecipient(text) && (shown.original || named()));
  if (!failureText && !isOfRecipient(text)) return false;
  return isProgramNotice(mail, text, shown, signs);
}

interface Signs {
  line: string;
  daemon: boolean;
  program: boolean;
  answer: boolean;
  failureSubject: boolean;
  failureText: boolean;
  /** Set if the text begins as the notices of mail systems do. */
  mailerText: boolean;
}

function signsOf(mail: ParsedMail, text: string): Signs {
  const line = mail.subject.slice(0, MAX_SUBJECT_CHARS);
  const daemon = isDaemon(mail);
  const mailerText = MAILER_TEXT.test(text);
  const { email = "", name = "" } = mail.from ?? {};
  return {
    line,
    daemon,
    program: daemon || ROBOT.test(email) || ROBOT_NAME.test(name) || mailerText,
    answer: isAnswer(mail),
    failureSubject: makes("failure-subject", line),
    failureText: makes("failure-text", text),
    mailerText,
  };
}

/** Returns whether the signs together show a mail system's notice, even if it is marked as a reply or as bulk. */
function isMailers({ daemon, program, answer, failureSubject, failureText, mailerText }: Signs): boolean {
  if (daemon) return failureSubject || mailerText;
  return program && failureSubject && failureText && !answer;
}

/** Returns whether a message is the notice of a program that is no mail system by its name. */
function isProgramNotice(mail: ParsedMail, text: string, shown: Shown, signs: Signs): boolean {
  const { line, daemon, program, failureText } = signs;
  const neutral = program && failureText && NEUTRAL_SUBJECT.test(line);
  const detailed = neutral && (isOfRecipient(text) || PROGRAM_TEXT.test(text));
  if (!daemon && ((!signs.failureSubject && !detailed) || signs.answer)) return false;
  if (shown.original) return program || PROGRAM_TEXT.test(text);
  const reason = classByText(text);
  const explained = daemon || (reason !== null && reason.vague !== true);
  return program && shown.named().some((address) => explained || isForeign(address, mail.from?.email ?? ""));
}

/**
 * Returns whether an address has another domain than the sender. Without a reason, an address of the sender's domain
 * is for questions.
 */
function isForeign(address: string, from: string): boolean {
  const [domain, home] = [address, from].map((each) => each.slice(each.lastIndexOf("@") + 1).toLowerCase());
  return domain !== undefined && home !== undefined && domain !== home && !home.endsWith(`.${domain}`);
}

/** Returns whether the message is from a mail system, by its sender or by fields that only mail systems write. */
function isDaemon(mail: ParsedMail): boolean {
  return (
    DAEMON.test(mail.from?.email ?? "") ||
    fieldOf(mail, "x-failed-recipients") !== null ||
    isDeliveryReport(mail)
  );
}

/** Returns whether a message declares that it is a delivery status notification (RFC 6522 §3, RFC 3464 §2). */
export function isDeliveryReport(mail: HeaderBlock): boolean {
  return /^multipart\/report\b.{0,200}\breport-type ?= ?"?delivery-status/is.test(
    fieldOf(mail, "content-type") ?? "",
  );
}

/** Returns whether a message has a receipt (RFC 8098) for a message that was delivered. */
function isReceipt(mail: ParsedMail): boolean {
  return mail.attachments.some(({ contentType }) => contentType === "message/disposition-notification");
}

/** Returns whether the words are about a recipient: MDaemon's notices say no more. */
function isOfRecipient(text: string): boolean {
  const textClass = classByText(text);
  return textClass !== null && (textClass.category === "recipient" || textClass.category === "mailbox-full");
}

/**
 * Returns whether a receipt reports a refusal (RFC 5429 §2.2, Dovecot): a program deleted the message. The receipts
 * of mailboxes that are emptied say so too, but mention no refusal.
 */
function isRefusal(mail: ParsedMail, text: string): boolean {
  const receipt = mail.attachments.find(
    ({ contentType }) => contentType === "message/disposition-notification",
  );
  const fields = Buffer.from(receipt?.bytes.subarray(0, MAX_SIGN_CHARS) ?? [])
    .toString("latin1")
    // RFC 5322 §2.2.3: a field may be folded.
    .replace(/\r?\n[ \t]+/g, " ");
  return (
    /^disposition ?: ?automatic-action\/[^\n]{0,100}\b(?:deleted|failed|denied)\b/im.test(fields) &&
    /\b(?:automatically rejected|(?:message|mail) (?:was|has been) (?:automatically )?(?:rejected|refused))\b/i.test(
      text,
    )
  );
}

/** Returns whether a message is from a newsletter or list (RFC 2369, RFC 2919). These also write about bounces. */
function isBulk(mail: ParsedMail): boolean {
  return ["list-unsubscribe", "list-id"].some((name) => fieldOf(mail, name) !== null);
}

/**
 * Returns whether a person answers or forwards a message. Its subject and text may be a notice's, but it is no
 * notice.
 */
export function isAnswer(mail: ParsedMail): boolean {
  return ANSWER.test(mail.subject);
}

/**
 * Returns whether a message is an automatic reply (RFC 3834 §5) of a person's program, not of a mail system. Mail
 * systems also mark their notices as `auto-replied`: their sender and subject together show it.
 * @param notice whether sender, subject and text are those of a failure notice
 */
function isAutoReply(mail: ParsedMail, notice: boolean): boolean {
  const line = mail.subject.slice(0, 200).replace(/^(?:re|aw|sv|antw|rv) ?: ?/i, "");
  if (makes("automatic-subject", line.replace(/^[^\p{L}]{1,3}/u, ""))) return true;
  const marked =
    mail.autoSubmitted === "auto-replied" ||
    ["x-autoreply", "x-autorespond", "x-autoresponder"].some((name) => fieldOf(mail, name) !== null) ||
    /^auto[-_]?(?:reply|response)/i.test(fieldOf(mail, "precedence") ?? "");
  return marked && !notice && fieldOf(mail, "x-failed-recipients") === null;
}
