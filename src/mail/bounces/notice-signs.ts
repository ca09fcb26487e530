import { fieldOf } from "./arf.ts";
import { folded } from "./diagnostic.ts";
import type { HeaderBlock } from "../reading/header-block.ts";
import type { ParsedMail } from "../reading/parse.ts";
import { classByText } from "./reply-class.ts";
import text from "./notices.txt" with { type: "text" };
import { patternGroups } from "./reply-phrases.ts";

/** Names under which mail systems send notices (RFC 5321 §4.5.5, and custom). */
const DAEMON =
  /^(?:mailer-?_?daemon|mail-?er-?daemon|[\w.-]{0,40}daemon|post-?_?master|mdaemon|mail-?daemon|daemon|mail[-._]?system|bounce[\w+-]*|mail(?:er)?[-._]?delivery[\w.-]*|mmdf|microsoft-?exchange[\da-f]{32}|[\w.-]*(?:mail|messaging)[-_.]security|anti-?(?:virus|spam)|(?:content|mail)-?filter)@|^(?:mailer-daemon|postmaster|<?>?)$|^@/i;

/** Names under which programs of all kinds send. */
const ROBOT =
  /^(?:[\w.-]{0,40}(?:smtp|mailer|mail[-_.]?service|anti[-_.]?virus|smtp[-_.]gateways?)[\w.-]{0,40}|post-?office|listserv|no-?reply|do-?not-?reply|(?:sys|mail)?-?admin(?:istrator)?|"?system[ ._-]administrator"?|root|smtp|mail|system|mta|(?:mail-?)?gateway|qmail|sendmail|postfix|exim|amavis\w{0,10}|delivery|(?:mail|smtp|mx)[-_.]?(?:server|service|agent|master|host|robot)|smtpd|nobody)@/i;

/** Display names of such programs. */
const ROBOT_NAME =
  /^(?:e?-?mail|internet mail|message) ?(?:delivery|system|administrator|server|gateway|filter|transport|security)|^mailer[- ]daemon|\bdelivery (?:sub)?system\b|\bpostmaster\b|^(?:interscan|content[- ]filter|mailmarshal|surfcontrol|barracuda|trend micro|symantec|mimecast|proofpoint|sophos)\b|^(?:système de (?:messagerie|distribution)|sistema (?:de|di) (?:entrega|correo|e-?mail|correio|posta|consegna)|servizio (?:di )?(?:posta|mail)|служба доставки|система доставки|メール配信|邮件系统|郵件系統)/i;

/** Phrases that programs write, and that people do not use to report a failure. */
const PROGRAM_TEXT =
  /permanent(?:ly)? (?:fail|error|fatal)|following (?:recipient|address|e-?mail)|(?:address|recipient)(?:\(?e?s\)?)? failed|remote (?:host|server) (?:said|returned|replied|issued)|automatically (?:generated|created)|\b[45]\d\d[ -]#?[45]\.\d{1,3}\.\d|error type|failed (?:address|recipient)|intended recipient|delivery attempts/i;

/** Subjects without a topic. Some programs use no other for their notices. */
const NEUTRAL_SUBJECT =
  /^\W{0,5}(?:(?:re: ?)?(?:e-?mail|mail|message|notice|notification|report|error|warning|information|no subject)\W{0,5})?$/i;

/** Sentences with which mail systems begin their notices. A person who pastes a notice puts other words first. */
const MAILER_TEXT =
  /^\W{0,40}(?:hi\W{0,4})?(?:(?:this|it)(?: is|'s) (?:the|an?) [\w.@-]{0,40} ?(?:[\w.-]{1,20} )?(?:program|mailer|mailer-daemon|mail system|mail delivery|mail agent|mail server|delivery status|deliver program|email server)\b|(?:this|your) message was (?:created|generated) automatically by mail|message from interscan|transcript of session follows|the following addresses had|the original message was received at|(?:-\W{0,10})?failure reasons\b|i'?m (?:sorry|afraid) (?:to have to inform you|i wasn'?t able to deliver))/i;

/** Subjects of reports of success, which the sender asked for (RFC 3461 §4.1). */
const SUCCESS =
  /^(?:successful mail delivery report|delivery status notification \((?:success|relay|expanded)\)|(?:message )?(?:delivered|relayed|expanded):)/i;

/** Subjects of reports about many messages and their failures (RFC 7489 §7.2.1.1, RFC 8460 §5.3). */
const AGGREGATE = /^report domain: ?\S{1,255} submitter:/i;

/** A statement of mail systems and programs, which `notices.txt` has in many languages. */
type Statement = "failure-subject" | "failure-text" | "automatic-subject";

let groups: ReadonlyMap<string, readonly RegExp[]> | null = null;

/** Returns whether the words make a statement, in any language. */
function makes(statement: Statement, said: string): boolean {
  groups ??= new Map(patternGroups(text, "i").map(({ head, patterns }) => [head, patterns]));
  return groups.get(`[${statement}]`)?.some((pattern) => pattern.test(said)) ?? false;
}

/** Prefixes that mail programs put before the subject of a message that is answered or forwarded. */
const ANSWER =
  /^(?:re|aw|antw|sv|vs|vl|vb|fwd?|wg|tr|rv|r|i|enc|res|odp|pd|ynt|ilt|doorst|továbbítás|отв|пересл|回复|答复|转发|回覆|轉寄|答覆|返信|転送|회신|전달)(?:\[\d{1,3}\])? ?[:：]/i;

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
