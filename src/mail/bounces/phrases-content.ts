import type { PhraseGroup } from "./phrase-group.ts";

/** The message is too big, or has too many recipients. */
export const SIZE: PhraseGroup = {
  outcome: "failed",
  category: "content",
  phrases: [
    [
      /(?:message|mail|content|attachment)(?: file)? (?:size|length)s? (?:\d{1,12} )?(?:exceed|is too|too|over|larger|limit)/,
      "Postfix, Exim, Sendmail (RFC 1870)",
    ],
    [
      /(?:message|mail|attachment|e-?mail)(?: is| was|'s| size)? (?:too (?:big|large|long)|larger than)|recipsizelimit/,
      "Sendmail, Exchange",
    ],
    [
      /exceed(?:s|ed|ing)? .{0,30}(?:maximum|max|fixed|allowed|permitted).{0,12}(?:message )?size|(?:maximum|max) (?:e?-?mail|message) size|exceed(?:s|ed)? .{0,30}message size/,
      "Gmail 5.3.4, Exchange, Mimecast",
    ],
    [
      /size of (?:this|the|your) message|message size (?:limit|violation)|databytes limit|mailsize limit|message length exceed/,
      "qmail, Coremail, Microsoft",
    ],
    [
      /too many recipients(?! from )|too much mail data|line (?:limit exceeded|length)|headers? too (?:large|long|big)/,
      'RFC 5321 §4.5.3.1: limits of one mail; Postfix has "from" behind it for those of one client an hour',
    ],
  ],
};

/** The content of the message is refused. */
export const CONTENT: PhraseGroup = {
  outcome: "failed",
  category: "content",
  phrases: [
    [
      /\bspam\b|\bjunk ?mail\b|(?:identified|classified|detected|marked) as junk|\bube\b|\buce\b|unsolicited|dt:spm|gtube/,
      "SpamAssassin, Rspamd, Gmail, Yandex, mail.ru, NetEase",
    ],
    [/spamassassin|rspamd|antispam|anti-spam|\bspam[a-z]/, "filters that name themselves"],
    [/спам|垃圾邮件|垃圾郵件|迷惑メール|스팸/, "Russian, Chinese, Japanese, Korean"],
    [/\bvirus|malware|infected|phish|trojan|malicious|suspicious|harmful/, "antivirus gateways, amavis"],
    [
      /(?:message|mail)? ?content (?:(?:is|was|has been) )?(?:reject|filter|denied|blocked|not (?:allowed|accepted)|policy|examination|presents)|message content/,
      "Gmail 5.7.0, Tencent, Barracuda",
    ],
    [
      /message filtered|because (?:its content|it contains)|content[- ]based|inappropriate (?:words|content)/,
      "Symantec.cloud, Gmail, Tencent",
    ],
    [/\b(?:banned|restricted) (?:name|content|file|attachment)|banned: |bad-header/, "amavis, Cisco"],
    [
      /contain(?:s|ed|ing)? (?:an? |the |some )?(?:malicious|prohibited|forbidden|blocked|banned|disallowed|dangerous|illegal|invalid|bad|blacklisted|unacceptable|executable|improperly|urls?|links?|domain|8-?bit)\b/,
      "Cisco, Courier and others: a part of the mail",
    ],
    [
      /password[- ]protected|(?:attachment|file (?:type|extension)|executable).{0,40}(?:not (?:allowed|accepted|permitted)|blocked|rejected|prohibited|forbidden)/,
      "attachment filters",
    ],
    [
      /\burls? (?:contained )?in this e?-?mail|(?:links?|urls?|domain) in (?:the |this |your )(?:message|mail|e-?mail|body)/,
      "SpamExperts and others",
    ],
    [
      /\b(?:headers?|mime|format|line|8bit|non-ascii|illegal char\w*)\b.{0,30}\b(?:malformed|invalid|not (?:compliant|allowed|accepted|rfc)|missing|duplicate|too long|error)\b|(?:malformed|invalid|missing|duplicate|multiple|bad) .{0,25}(?:header|mime|from:)|addresses in from:|no (?:date|message-id|from|subject) header|rfc ?5322|rfc ?2822|bare (?:lf|cr)/,
      "Gmail, amavis, Sendmail: the mail's form (RFC 5322)",
    ],
  ],
};
