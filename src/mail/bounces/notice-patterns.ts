/** Names under which mail systems send notices (RFC 5321 §4.5.5, and custom). */
export const DAEMON =
  /^(?:mailer-?_?daemon|mail-?er-?daemon|[\w.-]{0,40}daemon|post-?_?master|mdaemon|mail-?daemon|daemon|mail[-._]?system|bounce[\w+-]*|mail(?:er)?[-._]?delivery[\w.-]*|mmdf|microsoft-?exchange[\da-f]{32}|[\w.-]*(?:mail|messaging)[-_.]security|anti-?(?:virus|spam)|(?:content|mail)-?filter)@|^(?:mailer-daemon|postmaster|<?>?)$|^@/i;

/** Names under which programs of all kinds send. */
export const ROBOT =
  /^(?:[\w.-]{0,40}(?:smtp|mailer|mail[-_.]?service|anti[-_.]?virus|smtp[-_.]gateways?)[\w.-]{0,40}|post-?office|listserv|no-?reply|do-?not-?reply|(?:sys|mail)?-?admin(?:istrator)?|"?system[ ._-]administrator"?|root|smtp|mail|system|mta|(?:mail-?)?gateway|qmail|sendmail|postfix|exim|amavis\w{0,10}|delivery|(?:mail|smtp|mx)[-_.]?(?:server|service|agent|master|host|robot)|smtpd|nobody)@/i;

/** Display names of such programs. */
export const ROBOT_NAME =
  /^(?:e?-?mail|internet mail|message) ?(?:delivery|system|administrator|server|gateway|filter|transport|security)|^mailer[- ]daemon|\bdelivery (?:sub)?system\b|\bpostmaster\b|^(?:interscan|content[- ]filter|mailmarshal|surfcontrol|barracuda|trend micro|symantec|mimecast|proofpoint|sophos)\b|^(?:système de (?:messagerie|distribution)|sistema (?:de|di) (?:entrega|correo|e-?mail|correio|posta|consegna)|servizio (?:di )?(?:posta|mail)|служба доставки|система доставки|メール配信|邮件系统|郵件系統)/i;

/** Phrases that programs write, and that people do not use to report a failure. */
export const PROGRAM_TEXT =
  /permanent(?:ly)? (?:fail|error|fatal)|following (?:recipient|address|e-?mail)|(?:address|recipient)(?:\(?e?s\)?)? failed|remote (?:host|server) (?:said|returned|replied|issued)|automatically (?:generated|created)|\b[45]\d\d[ -]#?[45]\.\d{1,3}\.\d|error type|failed (?:address|recipient)|intended recipient|delivery attempts/i;

/** Subjects without a topic. Some programs use no other for their notices. */
export const NEUTRAL_SUBJECT =
  /^\W{0,5}(?:(?:re: ?)?(?:e-?mail|mail|message|notice|notification|report|error|warning|information|no subject)\W{0,5})?$/i;

/** Sentences with which mail systems begin their notices. A person who pastes a notice puts other words first. */
export const MAILER_TEXT =
  /^\W{0,40}(?:hi\W{0,4})?(?:(?:this|it)(?: is|'s) (?:the|an?) [\w.@-]{0,40} ?(?:[\w.-]{1,20} )?(?:program|mailer|mailer-daemon|mail system|mail delivery|mail agent|mail server|delivery status|deliver program|email server)\b|(?:this|your) message was (?:created|generated) automatically by mail|message from interscan|transcript of session follows|the following addresses had|the original message was received at|(?:-\W{0,10})?failure reasons\b|i'?m (?:sorry|afraid) (?:to have to inform you|i wasn'?t able to deliver))/i;

/** Subjects of reports of success, which the sender asked for (RFC 3461 §4.1). */
export const SUCCESS =
  /^(?:successful mail delivery report|delivery status notification \((?:success|relay|expanded)\)|(?:message )?(?:delivered|relayed|expanded):)/i;

/** Subjects of reports about many messages and their failures (RFC 7489 §7.2.1.1, RFC 8460 §5.3). */
export const AGGREGATE = /^report domain: ?\S{1,255} submitter:/i;
