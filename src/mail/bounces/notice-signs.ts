import { fieldOf } from "./arf.ts";
import { ANSWER, AUTOMATIC_SUBJECTS, FAILURE_SUBJECTS, FAILURE_TEXTS, isSaid } from "./notice-languages.ts";
import type { HeaderBlock } from "../reading/header-block.ts";
import type { ParsedMail } from "../reading/parse.ts";
import { classByText } from "./reply-class.ts";

/** Mail systems, by the names they send notices under (RFC 5321 §4.5.5, and custom). */
const DAEMON =
  /^(?:mailer-?_?daemon|mail-?er-?daemon|[\w.-]{0,40}daemon|post-?_?master|mdaemon|mail-?daemon|daemon|mail[-._]?system|bounce[\w+-]*|mail(?:er)?[-._]?delivery[\w.-]*|mmdf|microsoft-?exchange[\da-f]{32}|[\w.-]*(?:mail|messaging)[-_.]security|anti-?(?:virus|spam)|(?:content|mail)-?filter)@|^(?:mailer-daemon|postmaster|<?>?)$|^@/i;
/** Names that programs of all kinds write under. */
const ROBOT =
  /^(?:no-?reply|do-?not-?reply|(?:sys|mail)?-?admin(?:istrator)?|"?system[ ._-]administrator"?|root|smtp|mail|system|mta|(?:mail-?)?gateway|qmail|sendmail|postfix|exim|amavis\w{0,10}|delivery|(?:mail|smtp|mx)[-_.]?(?:server|master|host|robot)|smtpd|nobody)@/i;
const ROBOT_NAME =
  /^(?:e?-?mail|internet mail|message) ?(?:delivery|system|administrator|server|gateway|filter|transport|security)|^mailer[- ]daemon|\bdelivery (?:sub)?system\b|\bpostmaster\b|^(?:interscan|content[- ]filter|mailmarshal|surfcontrol|barracuda|trend micro|symantec|mimecast|proofpoint|sophos)\b|^(?:système de (?:messagerie|distribution)|sistema (?:de|di) (?:entrega|correo|e-?mail|correio|posta|consegna)|servizio (?:di )?(?:posta|mail)|служба доставки|система доставки|メール配信|邮件系统|郵件系統)/i;
/** What programs write, and people who tell of a failure do not. */
const PROGRAM_TEXT =
  /permanent(?:ly)? (?:fail|error|fatal)|following (?:recipient|address|e-?mail)|(?:address|recipient)(?:\(?e?s\)?)? failed|remote (?:host|server) (?:said|returned|replied|issued)|automatically (?:generated|created)|\b[45]\d\d[ -]#?[45]\.\d{1,3}\.\d|error type|failed (?:address|recipient)|intended recipient|delivery attempts/i;

/** Characters of a subject in which signs of a failure are looked for. */
const MAX_SUBJECT_CHARS = 500;
/** Characters of a text in which signs of a failure are looked for. */
const MAX_SIGN_CHARS = 8192;

/** What a notice has of the mail that it is about. */
export interface Shown {
  /** Whether it has that mail, or its header. */
  original: boolean;
  /** Whom it names as notices do, not within a sentence. */
  named(): readonly string[];
}

/**
 * Whether a mail is a notice of a failed delivery in words. It takes two of three signs - its sender, its subject, what
 * it says - so that a mail which only talks of bounces is none. A program of unknown kind has to show the mail or the
 * recipient as well, as shops write of deliveries too; anybody else has to show the mail, as people paste notices. An
 * automatic reply is none.
 */
export function isNotice(mail: ParsedMail, words: string, shown: Shown): boolean {
  const daemon = isDaemon(mail);
  const line = mail.subject.slice(0, MAX_SUBJECT_CHARS);
  const subject = isSaid(FAILURE_SUBJECTS, line);
  const said = words.slice(0, MAX_SIGN_CHARS).replace(/\s+/g, " ");
  if (isReceipt(mail)) return isRefusal(mail, said);
  if (isAutoReply(mail, daemon && subject) || SUCCESS.test(line) || AGGREGATE.test(line)) return false;
  const text = isSaid(FAILURE_TEXTS, said);
  // Domino and others copy the fields of the mail that came back.
  if (isBulk(mail))
    return (
      daemon &&
      subject &&
      text &&
      !isAnswer(mail) &&
      (shown.original || (shown.named().length > 0 && isOfRecipient(said)))
    );
  if (daemon && !isAnswer(mail)) return subject || text || (shown.original && isOfRecipient(said));
  if (!text || (!daemon && (!subject || isAnswer(mail)))) return false;
  const from = mail.from?.email ?? "";
  const program = daemon || ROBOT.test(from) || ROBOT_NAME.test(mail.from?.name ?? "");
  if (shown.original) return program || PROGRAM_TEXT.test(said);
  const reason = classByText(said);
  const tells = daemon || (reason !== null && reason.vague !== true);
  return program && shown.named().some((address) => tells || isForeign(address, from));
}

/** Whether an address is of another domain: where no reason is told, their own one is for questions. */
function isForeign(address: string, from: string): boolean {
  const [domain, home] = [address, from].map((each) => each.slice(each.lastIndexOf("@") + 1).toLowerCase());
  return domain !== undefined && home !== undefined && domain !== home && !home.endsWith(`.${domain}`);
}

/** Whether the mail is from a mail system, by its sender, or by what only mail systems write. */
function isDaemon(mail: ParsedMail): boolean {
  return (
    DAEMON.test(mail.from?.email ?? "") ||
    fieldOf(mail, "x-failed-recipients") !== null ||
    isDeliveryReport(mail)
  );
}

/** RFC 6522 §3, RFC 3464 §2: a mail that says of itself to be a delivery status notification. */
export function isDeliveryReport(mail: HeaderBlock): boolean {
  return /^multipart\/report\b.{0,200}\breport-type ?= ?"?delivery-status/is.test(
    fieldOf(mail, "content-type") ?? "",
  );
}

/** RFC 8098: what became of a mail that has been delivered. */
function isReceipt(mail: ParsedMail): boolean {
  return mail.attachments.some(({ contentType }) => contentType === "message/disposition-notification");
}

/** Whether a text says no more than what is wrong with a recipient: MDaemon has no other words. */
function isOfRecipient(said: string): boolean {
  const told = classByText(said);
  return told !== null && (told.category === "recipient" || told.category === "mailbox-full");
}

/**
 * RFC 5429 §2.2, Dovecot: a mail that was not kept is told of by a receipt as well, which says that a program deleted it.
 * The receipts of mailboxes that are emptied say so too, but of no refusal.
 */
function isRefusal(mail: ParsedMail, said: string): boolean {
  const receipt = mail.attachments.find(
    ({ contentType }) => contentType === "message/disposition-notification",
  );
  const fields = Buffer.from(receipt?.bytes.subarray(0, MAX_SIGN_CHARS) ?? []).toString("latin1");
  return (
    /^disposition ?: ?automatic-action\/[^\n]{0,100}\b(?:deleted|failed|denied)\b/im.test(fields) &&
    /\b(?:automatically rejected|(?:message|mail) (?:was|has been) (?:automatically )?(?:rejected|refused))\b/i.test(
      said,
    )
  );
}

/** RFC 2369, RFC 2919: newsletters and lists, which also write about bounces. */
function isBulk(mail: ParsedMail): boolean {
  return ["list-unsubscribe", "list-id"].some((name) => fieldOf(mail, name) !== null);
}

/** Reports that the sender has asked for (RFC 3461 §4.1): there was no trouble. */
const SUCCESS =
  /^(?:successful mail delivery report|delivery status notification \((?:success|relay|expanded)\)|(?:message )?(?:delivered|relayed|expanded):)/i;

/** RFC 7489 §7.2.1.1, RFC 8460 §5.3: reports of many mails, with what was rejected of them. */
const AGGREGATE = /^report domain: ?\S{1,255} submitter:/i;

/** A person answers or forwards a notice: the subject and the text are the notice's then, the mail is not. */
export function isAnswer(mail: ParsedMail): boolean {
  return ANSWER.test(mail.subject);
}

/**
 * RFC 3834 §5: the answer of a person's program, not of the mail system, whatever its subject quotes. Mail systems mark
 * their notices as `auto-replied` too: theirs are told by sender and subject together.
 * @param notice whether sender and subject are a mail system's that tells of a failure
 */
function isAutoReply(mail: ParsedMail, notice: boolean): boolean {
  const line = mail.subject.slice(0, 200).replace(/^(?:re|aw|sv|antw|rv) ?: ?/i, "");
  if (isSaid(AUTOMATIC_SUBJECTS, line.replace(/^[^\p{L}]{1,3}/u, ""))) return true;
  const marked =
    mail.autoSubmitted === "auto-replied" ||
    ["x-autoreply", "x-autorespond", "x-autoresponder"].some((name) => fieldOf(mail, name) !== null) ||
    /^auto[-_]?(?:reply|response)/i.test(fieldOf(mail, "precedence") ?? "");
  return marked && !notice;
}
