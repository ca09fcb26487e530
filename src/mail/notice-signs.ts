import { fieldOf } from "./arf.ts";
import type { ParsedMail } from "./parse.ts";

/** Mail systems, by the names they send notices under (RFC 5321 §4.5.5, and custom). */
const DAEMON =
  /^(?:mailer-?_?daemon|mail-?er-?daemon|post-?_?master|mdaemon|mail-?daemon|daemon|mail-?system|bounce[\w+-]*|mail(?:er)?-?delivery[\w-]*|mmdf)@|^(?:mailer-daemon|postmaster|<?>?)$/i;
/** Names that programs of all kinds write under: a sign only together with the subject. */
const ROBOT = /^(?:no-?reply|do-?not-?reply|administrator|admin|root|smtp|mail|system)@/i;
const FAILURE_SUBJECT =
  /undeliver|deliver(?:y|ed)?\b.{0,40}\b(?:fail|problem|error|delay|status|notif|report|impossible|unsuccess)|fail(?:ed|ure)?\b.{0,30}\b(?:deliver|notice|mail|message|report)|(?:mail|message) (?:system )?(?:error|delivery|failure|could not)|returned (?:mail|message|to sender)|(?:could not|couldn'?t|unable to|not) be? ?(?:sent|deliver)|non[- ]?deliver|bounced (?:mail|message)|(?:mail|message) bounced|warning: message|error sending|delayed \d+ hours|mail failed|notification d['e]|undelivered/i;
/** The same in other languages: German, French, Spanish, Portuguese, Italian, Dutch, Polish, Swedish, Russian, Japanese, Chinese, Korean. */
const FAILURE_SUBJECT_ABROAD =
  /unzustellbar|nicht (?:zugestellt|zustellbar|ausgeliefert)|zustellung.{0,20}(?:fehl|nicht|verz)|non (?:remis|distribu|délivr)|(?:[ée]chec|impossib\w*|non) .{0,20}(?:remise|distribution|livraison|envoi)|no (?:se (?:ha |pudo |puede )?)?entrega|error (?:de|en la) entrega|n[ãa]o (?:foi )?entregue|falha .{0,12}entrega|mancat[oa] (?:recapito|consegna)|(?:non|impossibile) (?:recapita|consegna)|onbestelbaar|niet bezorgd|niedostarcz|nie można dostarczyć|kunde inte levereras|olevererat|не ?доставлен|не удалось доставить|недоставленн|配信(?:不能|失敗|エラー|状況|でき|停止)|送信でき|送信エラー|未達|お届けできません|メールエラー|エラーメール|退信|未送达|无法(?:投递|送达|发送)|投递失败|无法傳遞|無法(?:傳|投)|반송|전송 실패/i;

/**
 * Whether a mail is a notice of a failed delivery in words. It takes two of three signs - its sender, its subject, what
 * it says - so that a mail which only talks of bounces is none. An automatic reply is none.
 */
export function isNotice(mail: ParsedMail, words: string): boolean {
  const daemon = isDaemon(mail);
  const line = mail.subject.slice(0, MAX_SUBJECT_CHARS);
  const subject = FAILURE_SUBJECT.test(line) || FAILURE_SUBJECT_ABROAD.test(line);
  if (isAutoReply(mail, daemon && subject) || isReceipt(mail)) return false;
  const text = FAILURE_TEXT.test(words.slice(0, MAX_SIGN_CHARS).replace(/\s+/g, " "));
  if (daemon) return subject || text;
  return subject && (text || ROBOT.test(mail.from?.email ?? "")) && !isAnswer(mail);
}

/** Whether the mail is from a mail system, by its sender, or by what only mail systems write. */
function isDaemon(mail: ParsedMail): boolean {
  return DAEMON.test(mail.from?.email ?? "") || fieldOf(mail, "x-failed-recipients") !== null;
}

/** RFC 8098: what became of a mail that has been delivered. */
function isReceipt(mail: ParsedMail): boolean {
  return mail.attachments.some(({ contentType }) => contentType === "message/disposition-notification");
}

/** A person answers or forwards a notice: the subject and the text are the notice's then, the mail is not. */
function isAnswer(mail: ParsedMail): boolean {
  return /^(?:re|aw|sv|antw|fwd?|wg|tr|rv) ?:/i.test(mail.subject);
}

/** Characters of a subject in which signs of a failure are looked for. */
const MAX_SUBJECT_CHARS = 500;
/** Characters of a text in which signs of a failure are looked for. */
const MAX_SIGN_CHARS = 8192;

const FAILURE_TEXT =
  /(?:could not|couldn'?t|cannot|can'?t|was not|wasn'?t|not|unable to|failed to|has not|hasn'?t) (?:be |been |yet been )?(?:deliver|sent|reach|transmit|route|send)|(?:permanent|fatal|transient|delivery) (?:fatal )?(?:error|failure|status|problem)|(?:address|recipient|user)s? failed|did not reach|undeliver|user unknown|requested action not taken|delivery (?:to the following )?.{0,40}fail|\b5\d\d[ -]\d\.\d\.\d|returned (?:to you|message|mail)|remote host said|message.{0,40}rejected|non è stato (?:possibile )?|impossibile recapitare|konnte.{0,60}nicht .{0,20}zugestellt|konnte nicht|nicht zugestellt|n'a (?:pas )?pu|n'ont pas pu|no se (?:pudo|ha podido|puede)|n[ãa]o (?:p[ôo]de|foi poss[íi]vel)|kon niet|kunde inte|nie (?:może|mogła|można)|не может быть доставлено|не удалось доставить|не было доставлено|送信できません|宛先|配信でき|お届けでき|无法(?:投递|送达|发送)|退回|退信|無法/i;

/** What the subjects of automatic replies begin with. */
const AUTO_SUBJECT =
  /^(?:(?:re|aw|sv|antw|rv) ?: ?)?\W{0,3}(?:auto(?:matic|matische|-)?[- :]?(?:reply|response|antwort|responder|antwoord|svar)|automat\w* (?:reply|response|antwort|antwoord|odpowied\S*)|autoreply|autosvar|out of (?:the )?office|ooo\b|abwesen|vacation|absence|i am away|on (?:leave|holiday)|r[ée]ponse automatique|absent du bureau|respuesta autom|fuera de (?:la )?oficina|risposta autom|fuori (?:sede|ufficio)|resposta autom|автоответ|自動(?:返信|応答|回覆)|自动(?:回复|答复)|不在(?:通知|の))/i;

/**
 * RFC 3834 §5: the answer of a person's program, not of the mail system, whatever its subject quotes. Mail systems mark
 * their notices as `auto-replied` too: theirs are told by sender and subject together.
 * @param notice whether sender and subject are a mail system's that tells of a failure
 */
function isAutoReply(mail: ParsedMail, notice: boolean): boolean {
  if (AUTO_SUBJECT.test(mail.subject.slice(0, 200))) return true;
  const marked =
    mail.autoSubmitted === "auto-replied" ||
    ["x-autoreply", "x-autorespond", "x-autoresponder"].some((name) => fieldOf(mail, name) !== null) ||
    /^auto[-_]?(?:reply|response)/i.test(fieldOf(mail, "precedence") ?? "");
  return marked && !notice;
}
