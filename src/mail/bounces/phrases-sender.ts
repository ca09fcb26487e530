import type { PhraseGroup } from "./phrase-group.ts";

/** The address in MAIL FROM or From, or its domain, is refused. */
export const SENDER_ADDRESS: PhraseGroup = {
  outcome: "failed",
  category: "policy",
  phrases: [
    [
      /\bsender(?:'?s)?(?: e?-?mail)?(?: address| domain)?\b(?! reputation).{0,80}?(?:reject|refused|denied|unknown|not (?:found|exist|allowed|permitted|valid|accepted)|does ?n[o']t (?:exist|resolve)|invalid|unresolvable|blocked|blacklisted|null mx|has no\b|resolve fail|is empty)/,
      "Postfix reject_unknown_sender_domain, Exchange, Sendmail check_mail, RFC 7372 X.7.27",
    ],
    [
      /(?:invalid|unknown|bad|unresolvable) domain of (?:the )?sender\b|(?:in|of) (?:the |your )?(?:from|reply-to|sender) (?:header|field|address)\b|domain of (?:the )?sender\b.{0,80}?(?:not (?:found|exist)|does ?n[o']t (?:exist|resolve))/,
      "Sendmail: the sender's domain has no address",
    ],
    [
      /(?:from address|return[- ]path|envelope[- ]from)\b.{0,80}?(?:reject|refused|denied|unknown|not (?:found|exist|allowed|permitted|valid|accepted)|does ?n[o']t (?:exist|resolve)|invalid|blocked)/,
      "gateways that check the addresses of the sender",
    ],
    [
      /\bmail from\b(?! \[?\d).{0,80}?(?:reject|refused|denied|not (?:allowed|permitted|accepted|found|valid)|does ?n[o']t (?:exist|resolve)|invalid|blocked|blacklisted|mismatch)/,
      "Domino, Sendmail, Exim: MAIL FROM refused",
    ],
    [
      /verify failed|(?:callout )?verification failed (?:for|:)|failed while verifying|(?:unknown|invalid|bad|unrout(?:e|ea)able|unroutable|unverifi\w{2,4}) sender|domain may not exist or dns check failed/,
      "Exim sender verify, and others",
    ],
    [/from address does not match|verified sender identity|badmailfrom/, "SendGrid, qmail"],
    [
      /sender verify|null sender|(?:den(?:y|ies)|rejects?|blocks?) the sender/,
      "Exim, Coremail, and servers that take no bounces",
    ],
    [/my name was rejected/, "qmail-remote: HELO refused"],
    [
      /(?:(?<!an den |an )absender(?:-?adresse|-?domain)?|exp[ée]diteur|remitente|remetente|mittente|отправител[ья]|nadawc[ay])[^.]{0,30}?(?:unbekannt|abgelehnt|nicht (?:gefunden|vorhanden)|existiert nicht|inexistant|inconnu|invalide|refus|rechaz|inv[áa]lid|no existe|rejeitad|rifiutat|inesistente|sconosciut|не существует|не найден|отклон|odrzucon|nie istnieje)/,
      "the same in German, French, Spanish, Portuguese, Italian, Russian and Polish",
    ],
  ],
};

/** Other faults of the sender. They are tried after its reputation, its authentication and the content. */
export const SENDER_SIDE: PhraseGroup = {
  outcome: "failed",
  category: "policy",
  phrases: [
    [
      /\b(?:your|sender'?s?|sending|client|source|originating|connecting) (?:(?:e-?mail|mail|ip|host|mail ?server|server)(?:'s)? ){0,2}(?:address|account|domain|mailbox|ip|host ?name|host|mail ?server|server|network)(?:'s)? (?:[[(<]\S{1,100} )?(?:(?:is|was|are|has|have|been|does|did|do|could|can|currently|temporarily|permanently) ){0,3}(?:not\b|\w{2,5}n't\b|cannot\b|no longer|unknown|suspended|disabled|denied|prohibited|rejected)|\baccount sending\b|(?:disabled|suspended|blocked|locked|closed) (?:for|from) (?:sending|outgoing|outbound|spam)/,
      "gateways: the address, account or host that is the sender's",
    ],
    [
      /chosen not to (?:receive|accept)|does ?n[o']t (?:accept|allow|receive|want) (?:(?:e?-?mails?|messages?) (?:of|from)\b|(?:external|outside|internet) (?:e?-?mails?|messages?|senders?)\b)/,
      "AOL: a recipient who does not want mail of this sender or kind",
    ],
    [
      /\brequires? (?:a )?confirmation|\bconfirm (?:this|your) (?:e-?mail|mail ?server|address(?! (?:list|book))|message|identity)|challenge[- /]response|sender (?:is )?not (?:yet )?(?:pre-?)?approved|not (?:in|on) (?:the |my |our |your )?(?:recipient'?s )?(?:white|allow|safe|guest) ?-?list/,
      "servers that ask the sender to confirm, and lists of welcome senders",
    ],
    [
      /\b(?:must|need to|have to) be (?:an? )?(?:member|subscriber|subscribed)|\b(?:only|restricted to) (?:list )?(?:members|subscribers)|(?:members|subscribers) only|(?:closed to|from) non-?(?:members|subscribers)|not (?:a )?(?:member of|subscribe[rd] (?:of|to)) (?:this|the) (?:mailing )?(?:group|list)/,
      "mailing lists that are for their members",
    ],
  ],
};

/** The sending host or domain has a bad reputation. */
export const BLOCKLISTS: PhraseGroup = {
  outcome: "failed",
  category: "reputation",
  phrases: [
    [
      /(?:blocked|rejected|listed|found|refused|black-?listed|block-?listed).{0,40}?(?:\busing\b|\bby\b|\bon\b|\bin\b|\bat\b|\bvia\b).{0,60}?(?:rbl|dnsbl|spamhaus|sbl|xbl|pbl|spamcop|barracuda|sorbs|black ?list|block ?list|bl\.|uribl|surbl|psbl|invaluement|reputation)/,
      "Postfix reject_rbl_client and the like",
    ],
    [/spamhaus|spamcop|barracudacentral|spamrl\.com|dnsbl|\brbl\b|surbl|uribl/, "names of blocklists"],
    [
      /\bblack-?list|\bblock-?list|\bblack ip\b|(?:black|block) list(?:ed)?\b/,
      "Microsoft, United Internet, Coremail, Orange",
    ],
    [
      /(?:poor|low|bad) (?:ip |domain |sender |e?-?mail )?reputation|\bip reputation|bad reputation|poor reputation sender|due to (?:the |its |your )?(?:(?:ip|domain|sender)(?:'s)? )?reputation|reputation service/,
      "Gmail, Cisco, Mimecast, Microsoft, Trend Micro",
    ],
    [
      /sender ?(?:base|score)\b|ipcheck\.proofpoint|cloudmark|unfavorable e-?mail statistics/,
      "Cisco, Proofpoint, AOL",
    ],
    [
      /your (?:ip|host|server|network|client|mail ?server)\b.{0,50}(?:blocked|banned|listed|rejected|denied)/,
      "mail.ru, qmail with rblsmtpd, and others",
    ],
    [
      /\b(?:ip|host|client|server|mta)\b.{0,40}\b(?:is |has been |was )?(?:blocked|banned|black-?listed|block-?listed)/,
      "AOL, AT&T, Tencent",
    ],
    [
      /\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\]?(?: >_is_| is | )(?:blocked|banned)\b|block(?:ed)? for (?:spam|abuse)/,
      'Cox, AT&T, Comcast: the address and "blocked"',
    ],
    [/client host.{0,80}(?:rejected|blocked|denied)/, "Postfix check_client_access"],
    [
      /banned (?:sending ip|sender ?\[)|blocked ip|invalid ip\b|dynamic[- ](?:ip|address|host)|dial-?up\b|denyip|\bip too new/,
      "Exchange Online 5.7.511 and 5.7.606, Tencent, Yahoo",
    ],
    [/(?:some )?messages from \[?[\da-f.:]{3,45}\]? weren'?t sent/, "Outlook.com S3140, RP-001, SC-004"],
    [
      /messages from \[?[\da-f.:]{3,45}\]? (?:will be )?(?:temporarily|permanently) deferred|\[tss\d\d\]/,
      "Yahoo TSS03 to TSS11",
    ],
    [
      /user complaints|unexpected volume|unusual rate|unsolicited mail originating|too many (?:(?:spam )?complaints|bounces)|(?:too many|excessive) (?:spams?\b|(?:bad|invalid|unknown|nonexistent) (?:recipients|users|addresses))/,
      "Yahoo TSS04, Gmail 4.7.28, and those who count what a host did",
    ],
    [
      /(?:\baup|\bipbl)#?[\w-]{0,40}\d{3}|\bbl[01]{6}\b|\((?:bl|(?:rly|rtr|dyn|con):\w+)\)|\b[hm][il]:[a-z]{3}\b|\bsc-00\d\b.{0,40}complaints/,
      "Charter, Cox, Comcast, T-Online, AOL, NetEase: codes of a blocked address",
    ],
    [
      /connection (?:was )?(?:rejected|refused) by policy|no smtp service.{0,40}\bip\b/,
      "Symantec.cloud, United Internet: refused before the greeting",
    ],
  ],
};

/** SPF, DKIM, DMARC, HELO or reverse DNS: the identity of the sending host (RFC 7372). */
export const AUTHENTICATION: PhraseGroup = {
  outcome: "failed",
  category: "reputation",
  phrases: [
    [
      /\b(?:spf|dkim|dmarc|arc)\b.{0,120}?(?:fail|reject|polic|pass|not allowed|not permitted|record|check|error|verif|authenticat|invalid)|not found in (?:your |the |its )?(?:spf|dkim|dmarc)\b|sender policy framework|mi:spf/,
      "Gmail, Microsoft, iCloud, mail.ru, United Internet, Mimecast, NetEase",
    ],
    [/not (?:allowed|permitted|authori[sz]ed) to (?:send|use)\b/, "SPF explanations (RFC 7208 §6.2)"],
    [
      /\bforg(?:ed|ery)\b|\bauth failed|unauthenticated|authentication(?:-| )results|not authenticated|fails? authentication|authentication (?:check|required by|fail|level)/,
      "Gmail 5.7.26, Exchange Online 5.7.515, Yahoo",
    ],
    [
      /reverse (?:dns|lookup|name|mapping|map|hostname)|\bptr\b|\brdns\b|no (?:valid )?reverse|forward[- ]confirmed|fix (?:your )?(?:reverse )?dns/,
      "Comcast, Gmail 5.7.25, Postfix, United Internet: reverse DNS",
    ],
    [
      /cannot (?:find|resolve) your (?:reverse )?(?:host|name|ip)|mismatches client ip|without (?:a )?valid (?:sender domain|ptr|reverse|dns)|hostname.{0,20}(?:does not resolve|not found|mismatch).{0,20}client/,
      "Postfix reject_unknown_client_hostname, Exchange gateways",
    ],
    [
      /(?<!relaying denied\. )ip name lookup failed|5\.5\.4 invalid domain name|(?:name|domain|argument) in (?:helo|ehlo)\b|invalid (?:helo|ehlo)|(?:helo|ehlo)\b.{0,60}(?:reject|invalid|mismatch|not|bad|must|refused|impersonat)/,
      "Postfix, Exim: the name in EHLO",
    ],
  ],
};
