import { fieldOf } from "./arf.ts";
import type { ParsedMail } from "./parse.ts";

/** Senders of notices: the daemon's names by custom and RFC 5321 §4.5.5. */
const DAEMON =
  /^(?:mailer-daemon|mail-?er-?daemon|postmaster|mdaemon|mail-daemon|daemon|mailsystem|bounce[\w+-]*|mail(?:er)?-?delivery[\w-]*|no-?reply|administrator|root|mmdf|smtp)@|^<?>?$/i;
const FAILURE_SUBJECT =
  /undeliver|deliver(?:y|ed)?\b.{0,40}\b(?:fail|problem|error|delay|status|notif|report|impossible|unsuccess)|fail(?:ed|ure)?\b.{0,30}\b(?:deliver|notice|mail|message|report)|(?:mail|message) (?:system )?(?:error|delivery|failure|could not)|returned (?:mail|message|to sender)|(?:could not|couldn'?t|unable to|not) be? ?(?:sent|deliver)|non[- ]?deliver|bounced (?:mail|message)|(?:mail|message) bounced|warning: message|error sending|delayed \d+ hours|mail failed|notification d['e]|unzustellbar|nicht zugestellt|non remis|no entregad|не доставлен|недоставлен|配信|送信でき|未達|エラー|退信/i;

/**
 * Whether a mail is a notice of a failed delivery in words. It takes two of three signs - its sender, its subject, what
 * it says - so that a mail which only talks of bounces is none. An automatic reply is none.
 */
export function isNotice(mail: ParsedMail, words: string): boolean {
  if (
    isAutoReply(mail) ||
    mail.attachments.some(({ contentType }) => contentType === "message/disposition-notification")
  )
    return false;
  const daemon = isDaemon(mail);
  const subject = FAILURE_SUBJECT.test(mail.subject);
  const text = FAILURE_TEXT.test(words.slice(0, MAX_SIGN_CHARS).replace(/\s+/g, " "));
  return daemon ? subject || text : subject && text && !isAnswer(mail);
}

/** Whether the mail is from a mail system, by its sender or by a null reverse-path that was written down. */
function isDaemon(mail: ParsedMail): boolean {
  return (
    DAEMON.test(mail.from?.email ?? "") ||
    fieldOf(mail, "return-path") === "<>" ||
    fieldOf(mail, "x-failed-recipients") !== null
  );
}

/** A person answers or forwards a notice: the subject and the text are the notice's then, the mail is not. */
function isAnswer(mail: ParsedMail): boolean {
  return /^(?:re|aw|sv|antw|fwd?|wg|tr|rv) ?:/i.test(mail.subject);
}

/** Characters of a text in which signs of a failure are looked for. */
const MAX_SIGN_CHARS = 8192;

const FAILURE_TEXT =
  /(?:could not|couldn'?t|cannot|can'?t|was not|wasn'?t|not|unable to|failed to|has not|hasn'?t) (?:be |been |yet been )?(?:deliver|sent|reach|transmit|route|send)|(?:permanent|fatal|transient|delivery) (?:fatal )?(?:error|failure|status|problem)|(?:address|recipient|user)s? failed|did not reach|undeliver|user unknown|delivery (?:to the following )?.{0,40}fail|\b5\d\d[ -]\d\.\d\.\d|returned (?:to you|message|mail)|remote host said|message.{0,40}rejected|non è stato|konnte nicht|n'a pas pu|no se pudo|не может быть доставлено|送信できません|宛先|配信でき/i;

/** RFC 3834 §5: the answer of a person's program, not of the mail system. `auto-generated` may be either. */
function isAutoReply(mail: ParsedMail): boolean {
  if (
    mail.autoSubmitted === "auto-replied" ||
    fieldOf(mail, "x-autoreply") !== null ||
    fieldOf(mail, "x-autorespond") !== null
  )
    return !FAILURE_SUBJECT.test(mail.subject);
  return (
    /^(?:re: )?(?:auto(?:matic)?[- :]|out of (?:the )?office|abwesen|vacation|absence|i am away)/i.test(
      mail.subject,
    ) && !FAILURE_SUBJECT.test(mail.subject)
  );
}
