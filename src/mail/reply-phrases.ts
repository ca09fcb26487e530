/** Whom or what a refusal is about. */
export type ReplyCategory =
  | "recipient"
  | "mailbox_full"
  | "policy"
  | "reputation"
  | "content"
  | "infrastructure"
  | "protocol"
  | "other";

interface TextRule {
  /** Against the text in lower case with single spaces. Gaps are bounded, so each takes linear time. */
  pattern: RegExp;
  outcome: "hard" | "soft" | "failed";
  category: ReplyCategory;
  /** Who talks so. */
  source: string;
}

/**
 * What servers say, the first row that matches. Order is meaning: a complaint about the sender that quotes words for an
 * unknown user is about the sender, and a full mailbox that is "not found over quota" is full.
 */
export const TEXT_RULES: readonly TextRule[] = [
  {
    pattern:
      /(?:sender(?:'?s)?(?: e?-?mail)?(?: address| domain)?|domain of sender(?: address)?|from address|return[- ]path|envelope from|mail from)\b.{0,80}?(?:rejected|refused|denied|unknown|not (?:found|exist|allowed|permitted|valid)|does ?n[o']t (?:exist|resolve)|invalid|unresolvable|blocked|blacklisted|not accepted|verify failed)|unknown sender|invalid sender|bad sender|my name was rejected/,
    outcome: "failed",
    category: "policy",
    source:
      "Postfix reject_unknown_sender_domain, Exim sender verify, Sendmail check_mail: the sender's address",
  },
  {
    pattern:
      /(?:message|mail|content|attachment)(?: file)? (?:size|length) (?:exceed|is too|too|over|larger|limit)|(?:message|mail|attachment|e-?mail)(?: is| was|'s| size)? (?:too (?:big|large|long)|larger than)|exceed(?:s|ed|ing)? .{0,30}(?:maximum|max|fixed|allowed|permitted).{0,12}(?:message )?size|size of (?:this|the|your) message|message size|too many (?:recipients|hops|received)/,
    outcome: "failed",
    category: "content",
    source: "Postfix, Exim, Sendmail, Exchange: size limits (RFC 1870), loops",
  },
  {
    pattern:
      /(?:mail ?box|mail ?folder|inbox|in-?box|account|user|recipient|mail ?drop|maildir|storage|disk|quota)\b.{0,50}?(?:\bfull\b|over (?:its |the |their |his )?(?:disk |storage |mail )?(?:quota|limit|allocation|size)|over ?quota|out of (?:storage|space|disk)|(?:quota|limit|size|space|storage).{0,20}exceed|exceed.{0,30}(?:quota|limit|size|storage|space)|no (?:disk )?space)|exceeded storage allocation|over ?quota|quota (?:exceeded|violation|is full)|exceed(?:s|ed|ing)? .{0,25}(?:quota|mailbox)|mailbox_full|insufficient (?:disk|mailbox|quota|storage)|not enough (?:storage )?space|too many messages in (?:the |this )?mailbox|(?:disk|mailbox) quota|would exceed|is full|mailfolder is full|容量|メールボックスが一杯|postfach (?:ist )?voll|boîte.{0,20}pleine|buz[oó]n lleno|ящик.{0,20}переполнен/,
    outcome: "soft",
    category: "mailbox_full",
    source: "Gmail OverQuota, Exchange, Dovecot, Cyrus, Sendmail, Postfix, Courier, qmail vpopmail",
  },
  {
    pattern:
      /(?:blocked|rejected|listed|found|refused|blacklisted|black-listed|block-listed|blocklisted).{0,40}?(?:\busing\b|\bby\b|\bon\b|\bin\b|\bat\b|\bvia\b).{0,60}?(?:rbl|dnsbl|spamhaus|sbl|xbl|pbl|spamcop|barracuda|sorbs|black ?list|block ?list|bl\.|uribl|surbl|psbl|invaluement|reputation)|spamhaus|spamcop|barracudacentral|dnsbl|\brbl\b|black-?list|block-?list|bad reputation|(?:poor|low|bad) (?:ip |domain |sender |e?-?mail )?reputation|sender ?(?:base|score)|blocked using|your (?:ip|host|server|network|client)\b.{0,50}(?:blocked|banned|listed|rejected|denied)|(?:ip|host|client|server)\b.{0,40}\b(?:is |has been |was )?(?:blocked|banned|blacklisted)|client host.{0,80}(?:rejected|blocked|denied)|blocked ip|invalid ip\b|user complaints|unexpected volume|unusual rate|unsolicited mail originating/,
    outcome: "failed",
    category: "reputation",
    source: "DNS blocklists, Microsoft, Yahoo, Gmail, Tencent: the sending address's name",
  },
  {
    pattern:
      /\b(?:spf|dkim|dmarc|arc)\b.{0,120}?(?:fail|reject|polic|pass|not allowed|not permitted|record|check|softfail|error|verif|authenticat)|sender policy framework|not (?:allowed|permitted|authorized|authorised) to (?:send|use)|unauthenticated|authentication(?:-| )results|not authenticated|fails? authentication|authentication (?:check|required by|fail)|reverse (?:dns|lookup|name|mapping|map)|\bptr\b|\brdns\b|no (?:valid )?reverse|cannot (?:find|resolve) your (?:reverse )?(?:host|name|ip)|(?:helo|ehlo)\b.{0,60}(?:reject|invalid|mismatch|not|bad|must|refused)|mismatches client ip|without (?:a )?valid (?:sender domain|ptr|reverse|dns)|fix (?:your )?(?:reverse )?dns|forward[- ]confirmed|hostname.{0,20}(?:does not resolve|not found|mismatch).{0,20}client/,
    outcome: "failed",
    category: "reputation",
    source: "RFC 7372 and the like: SPF, DKIM, DMARC, reverse DNS of the sending host",
  },
  {
    pattern:
      /\bspam\b|\bube\b|\buce\b|unsolicited|\bvirus|malware|infected|phish|trojan|suspicious|content (?:rejected|filter|blocked|not (?:allowed|accepted)|policy)|message content|contain(?:s|ed|ing)? (?:an? |the |some )?(?:malicious|prohibited|forbidden|blocked|banned|disallowed|dangerous|illegal|invalid|bad|blacklisted|unacceptable|executable|urls?|links?|domain|8-?bit)\b|(?:attachment|file (?:type|extension)|executable).{0,40}(?:not (?:allowed|accepted|permitted)|blocked|rejected|prohibited|forbidden)|\b(?:headers?|mime|format|line|8bit|non-ascii|illegal char\w*)\b.{0,30}\b(?:malformed|invalid|not (?:compliant|allowed|accepted|rfc)|missing|duplicate|too long|error)\b|(?:malformed|invalid|missing|duplicate|multiple|bad) .{0,25}(?:header|mime|from:)|rfc ?5322|rfc ?2822|bare (?:lf|cr)/,
    outcome: "failed",
    category: "content",
    source: "SpamAssassin, amavis, Rspamd, Gmail, antivirus gateways",
  },
  {
    pattern:
      /relay(?:ing)? (?:access )?(?:denied|not (?:permitted|allowed)|prohibited|is (?:denied|not))|unable to relay|not? (?:permitted to |allowed to )?relay|cannot relay|does not relay|we do(?:n'?t| not) relay|relay not|third[- ]party relay|authentication (?:is )?required|must (?:be )?(?:authenticate|login|issue a starttls)|rcpthosts|not (?:a )?local (?:domain|host)|isn'?t allowed to be relayed|mail loop|loop(?:s|ing)? (?:detected|back|count)|hop count|routing loop|loops back to myself/,
    outcome: "failed",
    category: "infrastructure",
    source: "Postfix, Exim, qmail, Exchange: a server not meant for the recipient's mail, loops",
  },
  {
    pattern:
      /(?:user|account|mailbox|address|recipient)\b.{0,60}(?:temporar(?:y|ily)|currently) (?:locked|suspended|disabled|blocked|unavailable|inactive)|\b(?:locked|suspended|disabled) temporarily/,
    outcome: "soft",
    category: "recipient",
    source: "a mailbox that is expected back",
  },
  {
    pattern:
      /(?:user|users|recipient|mailbox|mail box|account|address|addressee|alias|destination|destinatario|person|entry|customer|local[- ]?part|username|mailbox name|e-?mail(?: account| address)?)\b.{0,80}?(?:\bunknown\b|\bunkown\b|not (?:be )?(?:found|known|exist|listed|valid|here|present|registered|our|a valid|in (?:the )?(?:list|directory|database))|does ?n[o']t (?:exist|have)|does not (?:exist|have)|do(?:es)? not (?:have|list)|doesn?t exist|non[- ]?exist|is? no(?:t| longer) (?:exist|valid|active|available|in use|on server|here|with)|no longer|n'existe|inexist|invalide?|nonexistent|possibly incorrect|(?:has )?moved)|recipnotfound|recipientnotfound|(?:no|not a|not an|unknown|invalid|nonexistent|non-existent|bad|undefined|unrecognized|illegal|incorrect|wrong) (?:such |valid |known |local |virtual |email |e-mail |mail |mailbox )*(?:user|users|recipient|recipients|mailbox|mailboxes|account|address|addresses|addressee|alias|person|login|local part|name here|destination)\b|mailbox (?:unavailable|not available|is unavailable|(?:is )?inactive|does)|(?:this|that|the) (?:user|account|address|recipient|email|mailbox) (?:is not|isn'?t|does ?n[o']t|doesn'?t have|has been|is an? un|is inv|could not be found|was not found|cannot be found)|there is no (?:one|such|user|mailbox|account)|no mailbox (?:here|by that name|found)|no one (?:here )?by that name|unknown[- ](?:local[- ]part|user|recipient|mailbox|address)|unrout(?:e|ea)able (?:mail )?address|unrouteable address|not our customer|address rejected: (?:access denied|user|undeliverable|unverified)|recipient (?:address )?rejected: (?:access denied|undeliverable)|undeliverable address|could(?: not|n'?t) (?:be )?(?:find|found) (?:any )?(?:mailbox|user|the recipient)|can'?t find (?:a )?(?:user|mailbox|recipient)|address (?:does|is) not|invalid (?:final )?delivery user|invalid-recipient|invalid recipient|addressee unknown|not listed in (?:domino|public)|wasn'?t found (?:at|in)|couldn'?t be (?:found|delivered to)|doesn'?t have an? .{0,30}account|this email address .{0,30}not|destinataire (?:inconnu|invalide)|adresse .{0,40}invalide|utilisateur inconnu|usuario (?:desconocido|no existe)|benutzer (?:unbekannt|existiert nicht)|empfänger unbekannt|utente sconosciuto|не существует|недоступен|неверный адрес|宛先(?:不明|が)|存在しません|見つかりません|ユーザー?(?:が)?不明|用户不存在|收件人不存在/,
    outcome: "hard",
    category: "recipient",
    source:
      "no such mailbox, in the words of Postfix, Exim, Sendmail, qmail, Exchange, Domino, Courier, Gmail, Yahoo, Zoho and others",
  },
  {
    pattern:
      /(?:account|mailbox|user|address|recipient|inbox|e-?mail)\b.{0,60}?(?:disabled|inactive|deactivated|suspended|discontinued|terminated|closed|deleted|expired account|dormant|abandoned|not active|not enabled|locked|on hold)|(?:disabled|inactive|deactivated|suspended|closed|discontinued|terminated|expired|dormant) (?:e?-?mail ?)?(?:account|mailbox|user|address|recipient)|user(?:name)? (?:has been )?(?:suspended|disabled)|address no longer accepts mail|no longer accepts? (?:mail|messages)/,
    outcome: "hard",
    category: "recipient",
    source: "RFC 3463 X.2.1: disabled mailboxes, in the words of Gmail, Yahoo, AOL, Exchange",
  },
  {
    pattern:
      /(?:host|domain)(?: or domain)?(?: name)? (?:not found|unknown|does ?n[o']t exist|does not exist|is not reachable|lookup failed|is unknown|invalid|couldn'?t be found)|(?:no such|unknown|invalid|illegal|bad|nonexistent|unable to (?:find|resolve|look ?up)|unresolvable|cannot (?:find|resolve)) (?:destination |recipient |mail )?(?:host|domain|mail server)|nxdomain|domain not found|host (?:name )?not found|couldn'?t find any host|(?:no|couldn'?t find any|not find any) (?:mx|mail exchanger|relevant answers|valid mx)|had no relevant answers|illegal host\/domain|null ?mx|no smtp service|couldn'?t find a mail exchanger|no mail exchanger|does ?n[o']t (?:receive|accept) (?:any )?(?:e?-?mail|mail)|does not accept (?:e?-?mail|mail)|never accepts mail|all relevant mx records point to non-existent|domain (?:has )?no (?:mail exchangers|mx)|name service error.{0,60}host not found|hostunknown|domain has expired/,
    outcome: "hard",
    category: "recipient",
    source: "a domain that does not exist or takes no mail (RFC 7505): Postfix, Exim, qmail, Gmail, Exchange",
  },
  {
    pattern:
      /(?:delivery time|message|retry time(?:out)?|queue time|timeout|time ?limit|been in the queue).{0,40}?(?:expired|exceeded|too long|timed? ?out)|retry time not reached|(?:could not be|not been|unable to) (?:deliver|delivered|send).{0,60}?(?:for|after|in|within) (?:the (?:last|past) )?\d+ ?(?:\.\d+ )?(?:h|d|m|second|minute|day|week)|connection (?:timed out|timeout|refused|reset|was dropped|lost|dropped|closed|died)|lost connection|conversation .{0,60}timed out|timed out while|no route to host|network (?:is )?unreachable|host (?:is )?(?:down|unreachable)|could not (?:connect|establish|be reached)|server did not (?:respond|accept our requests)|did not respond|unable to connect|connect to .{0,120}:|i'm not going to try again|give up|giving up|too old|sick|remote host (?:is )?not responding|no answer|delivery (?:attempts|temporarily)|temporary (?:failure|error)|try again later|please try (?:again )?later|resources (?:temporarily )?unavailable|too many (?:connections|sessions|concurrent|messages)|rate limit|receiving mail (?:at a rate|too quickly)|throttl|greylist|graylist|frequency limited|temporarily (?:deferred|rejected|unavailable|rate)|service (?:is )?(?:not available|unavailable|currently unavailable)/,
    outcome: "soft",
    category: "infrastructure",
    source: "hosts that could not be reached or asked to come back, until somebody gave up",
  },
  {
    pattern:
      /access denied|policy|policies|administrative(?:ly)? (?:prohibit|reject|den)|not (?:accepted|welcome|allowed|authori[sz]ed|permitted)|permission|prohibited|forbidden|restricted|banned|message (?:was )?(?:rejected|refused|blocked|denied)|rejected due to|mail rejected|transaction (?:failed|rejected)|refused by|blocked|only accepts? mail from|moderat|group/,
    outcome: "failed",
    category: "policy",
    source: "refusals that name no other reason",
  },
];
