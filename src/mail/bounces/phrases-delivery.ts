import type { PhraseGroup } from "./phrase-group.ts";

/** Whole sentences with words that would mislead by themselves. */
export const WHOLE_SENTENCES: readonly PhraseGroup[] = [
  {
    outcome: "failed",
    category: "content",
    phrases: [
      [
        /exceeded storage allocation.{0,60}message size/,
        "United Internet: 552 in RFC 5321's words, then what it is about",
      ],
    ],
  },
  {
    outcome: "failed",
    category: "policy",
    phrases: [
      [
        /sender verify failed/,
        "Exim: it says last whose address it has asked for, behind what the other server said",
      ],
    ],
  },
  {
    outcome: "hard",
    category: "recipient",
    phrases: [
      [
        /account or domain may not exist, they may be blacklisted/,
        "cPanel: it cannot tell, and the first guess is the common one",
      ],
      [/accountdisabledexception|aduserdisabled/, "Exchange Online STOREDRV: the account is switched off"],
      [/recipient cannot be verified.{0,60}check all recipients/, "cPanel: recipient verification"],
      [
        /policy rejection on the target address/,
        "Yandex: the recipient's account is blocked (yandex.com/support/mail, bounces)",
      ],
    ],
  },
  {
    outcome: "failed",
    category: "policy",
    phrases: [
      [
        /resolver\.rst\.(?:sendernotauthenticated|notauthori[sz]ed|authrequired|restricted)|address requires authentication|email address is not verified/,
        "Exchange: a recipient that takes mail of known senders alone; MDaemon the same; Amazon SES: ours is not verified",
      ],
      [
        /must issue a starttls|(?:starttls|encryption|tls) (?:is )?required|requires? (?:starttls|tls|encryption)/,
        "RFC 3207 §4: the peer wants TLS first",
      ],
      [
        /rejected .{0,40}for policy reasons|message not accepted for policy reasons|reject(?:ed)? due to (?:(?!spf|dmarc|dkim)\w{1,20} )?(?:polic|restrict)/,
        "Outlook.com, Yahoo, iCloud, Mimecast: they name no other reason",
      ],
      [
        /(?:sender|sending|outgoing|outbound|hourly|daily)\b.{0,30}\b(?:quota|limit)|quota .{0,20}for sender|policy rejection- quota/,
        "Exchange, Gmail X.4.5, policyd: the sender's allowance, not the mailbox's",
      ],
      [
        /(?:max|maximum) (?:number of )?(?:e?-?mails|messages|defers)\b.{0,20} per (?:hour|day)/,
        "cPanel: what our own smarthost lets a domain send",
      ],
      [
        /not accepting mail from this sender|aol will not accept delivery of this message/,
        "AOL: all its refusals bear X.2.1, whatever they are about",
      ],
      [
        /mail is rejected by recipients|(?:user|recipient|addressee)s? (?:\S{1,100} )?(?:has |have )?(?:reject|refuse|block)(?:e?d|s) (?:your?|this sender|the sender|sender|mails? from|messages? from|to receive)\b/,
        "Tencent, KDDI and others: a recipient who has blocked the sender",
      ],
      [
        /invalid dns mx or a\/aaaa resource record/,
        "United Internet: of the sender's domain, behind the words for no such mailbox",
      ],
      [
        /groups\.google\.com\/support|permission to post (?:messages )?to the group/,
        "Google Groups, in any language by its link: it does not tell whether there is no such group",
      ],
    ],
  },
  {
    outcome: "soft",
    category: "infrastructure",
    phrases: [
      [
        /host not found, try again|host name lookup failure|name server timeout|dns soft error|servfail|lookup failed temporarily/,
        "Postfix, Cisco, qmail: a name server that did not answer, which says nothing of the domain",
      ],
      [
        /thread limit exceeded|receivingrate|(?:receiving|received) (?:too much )?e?-?mail (?:at a rate|too quickly|in a short)/,
        "Exchange Online STOREDRV, Gmail 4.2.1, Rackspace: a mailbox that gets too much at once",
      ],
      [
        /receiving too much e?-?mail|rate ?limit(?:ed)? ?.{0,20}exceed|mailbox unavailable or access denied/,
        "Rackspace, mail.ru, Tencent: the same in other words",
      ],
      [
        /mailbox (?:database|server|store|host) (?:is )?(?:currently )?(?:disabled|offline|unavailable|closed|dismounted|not (?:available|mounted))/,
        "Exchange: a server, not the mailbox",
      ],
      [/write error or disk full|no space left on device/, "qmail-queue: the server's disk, not the mailbox"],
      [
        /storagetransientexception|mapiexception(?:network|timeout|rpc|sessionlimit|maxobjs)/,
        "Exchange Online STOREDRV: the mailbox server did not answer",
      ],
      [/too many errors from your|dt:spm.{0,10}please try again/, "Free.fr, NetEase: to come back later"],
    ],
  },
];

/** The program that delivers to the mailbox failed. */
export const LOCAL_PROGRAM: PhraseGroup = {
  outcome: "failed",
  category: "infrastructure",
  phrases: [
    [
      /procmail: (?:couldn'?t|program failure|lock failure|error while|out of memory|unable)/,
      "procmail: its messages may quote a program that does not know a user",
    ],
  ],
};

/** The message is in a loop. */
export const LOOPS: PhraseGroup = {
  outcome: "failed",
  category: "infrastructure",
  phrases: [
    [
      /mail loop|loop(?:s|ing)? (?:detected|back|count)|routing loop|loops back to myself|remote host address is the local host|\blooping\b/,
      "Postfix, qmail, Exchange",
    ],
    [/hop count|too many (?:hops|received)|\breceived:\W.{0,20}headers? exceed/, "RFC 5321 §6.3"],
  ],
};

/** The server does not accept mail for the recipient's domain. */
export const RELAYING: PhraseGroup = {
  outcome: "failed",
  category: "infrastructure",
  phrases: [
    [
      /relaying to .{0,100}(?:denied|prohibited|not )|relay(?:ing)? (?:access )?(?:denied|not (?:permitted|allowed)|prohibited|is (?:denied|not))|no relaying|relaying (?:is )?disallowed|(?:permission|allowed|authori[sz]ed) to relay/,
      "Postfix, Exim, Sendmail, Exchange",
    ],
    [
      /unable to relay|not? (?:permitted to |allowed to |configured to )?relay|cannot relay|does not relay|we do(?:n'?t| not) relay|relay not|third[- ]party relay|denies relay|relay check|local users? only|no smtp mx only/,
      "Exchange, Coremail, CommuniGate, and NetEase of a sender who is none of its users",
    ],
    [
      /authentication (?:is )?required|requires authentication|must (?:be )?(?:authenticate|login|log in)/,
      "MailEnable, MDaemon: a submission server",
    ],
    [/rcpthosts|not (?:a )?local (?:domain|host)|isn'?t allowed to be relayed/, "qmail"],
  ],
};

/** Hosts that could not be reached, or that asked to try later until the sending server gave up. */
export const TROUBLE: PhraseGroup = {
  outcome: "soft",
  category: "infrastructure",
  vague: true,
  phrases: [
    [
      /envelope expired|(?:delivery time|message|retry time(?:out)?|queue time|timeout|time ?limit|been in the queue).{0,40}?(?:expired|exceeded|too long|timed? ?out)|retry time not reached|too old/,
      "OpenSMTPD, Sendmail, Exim, qmail, Exchange: given up after its days",
    ],
    [
      /(?:failed|after|maximum(?: number of)?) (?:\d{1,4} )?(?:delivery )?attempts|aborted after \d|(?:could not be|not been|unable to) (?:deliver|delivered|send).{0,60}?(?:for|after|in|within) (?:the (?:last|past) )?(?:multiple|\d+ ?(?:\.\d+ )?(?:h|d|m|second|minute|day|week))|i'm not going to try again|g(?:ive|iving|ave) up(?! on )/,
      "Sendmail, Yahoo, qmail",
    ],
    [
      /connection (?:timed out|timeout|refused|reset|was dropped|lost|dropped|closed|died)|lost connection|conversation .{0,60}timed out|timed out while|connect to .{0,120}:|connection with \S{1,255} is broken/,
      "Postfix, Sendmail, Exim: a connection that failed",
    ],
    [
      /no (?:valid )?route to (?:host|remote mx|destination)|network error on destination|destination seems? to reject all|(?:all )?routes to destination blocked|temporary failure in mx lookup|retrieve source address|address family mismatch|network (?:is )?unreachable|host (?:is )?(?:down|unreachable)|(?:could not|not|can'?t|cannot) (?:connect|establish|be reached)|server did not (?:respond|accept our requests)|(?:did|is|was) not (?:respond(?:ing)?\b|reachable)|unable to (?:connect|contact)|remote host (?:is )?not responding|no answer|hosts? (?:\S{1,255} )?(?:has|have) been failing/,
      "Gmail, Exchange, qmail, Exim, OpenSMTPD: a host that does not answer",
    ],
    [
      /delivery (?:attempts|temporarily)|temporarily (?:failed|failing)|temporary (?:lookup|failure|error|problem|system problem|domain failure|local problem|internal error)|try again|please try|(?:essayer|r[ée]essayer) plus tard|sp[äa]ter (?:noch ?mal|erneut)|intente? (?:de nuevo )?m[áa]s tarde|попробуйте позже/,
      "RFC 5321 §4.2.2 and its translations: come back later",
    ],
    [
      /resources (?:are )?(?:temporarily )?unavailable|insufficient (?:system )?(?:resources|storage)|(?:server|system)(?:\(\w{1,10}\))? (?:is )?(?:too )?busy|too busy|(?:load|traffic) (?:is )?too high|too much load|queue (?:is )?too long|out of memory|local error in processing|internal (?:server|system) error|system (?:is )?not accepting/,
      "RFC 5321 §4.2.3 451 and 452, Exchange, Mimecast",
    ],
    [
      /too many (?:connections|sessions|concurrent|messages|mails)|trop de connexions|rate limit|throttl|frequency limited|excessive volume|slow down|max(?:imum)? message per connection/,
      "Tencent, Orange, iCloud, Yahoo: more than they take at once",
    ],
    [/grey-?list|gray-?list/, "Postgrey and the like"],
    [
      /cannot start tls|handshake fail|server certificate (?:not |is not )/,
      "Postfix: a peer whose TLS does not work",
    ],
    [
      /temporarily (?:deferred|rejected|unavailable|rate)|service (?:is )?(?:not available|unavailable|currently unavailable)|service refus/,
      "RFC 5321 §3.8, Orange",
    ],
  ],
};

/** The SMTP conversation itself failed (RFC 5321 §4.2.3, 500 to 504). */
export const PROTOCOL: PhraseGroup = {
  outcome: "failed",
  category: "protocol",
  phrases: [
    [
      /(?<!remote )\b(?:smtp )?protocol (?:violation|error)|syntax error in parameters|synchroni[sz]ation error|command pipelining|pipelining (?:not|is|commands)|(?:bad|out of) sequence|command (?:not |un)recogni[sz]ed|unrecogni[sz]ed command|unsupported (?:option|parameter)/,
      "Postfix reject_unauth_pipelining, Exim, Cox CXSMTP, Exchange",
    ],
  ],
};

/** Refusals that name no other reason. */
export const POLICY: PhraseGroup = {
  outcome: "failed",
  category: "policy",
  vague: true,
  phrases: [
    [
      /access denied|\bno permit\b|permission|not (?:accepted|welcome|allowed|authori[sz]ed|permitted)|(?:do|does|will|can) ?n[o']t accept (?:e?-?mail|mail|messages)|(?:do|does|will|can) not accept (?:e?-?mail|mail|messages)/,
      "Sendmail access_db, Exchange",
    ],
    [
      /policy|policies|administrative(?:ly)? (?:prohibit|reject|den|lockout)|prohibited|forbidden|restricted|banned|\bspoofed\b/,
      "Gmail gcdp, Mimecast, web.de",
    ],
    [
      /message (?:was )?(?:rejected|refused|blocked|denied)|(?:mail|e-?mail) (?:\S{1,60} )?(?:is |was )?rejected|(?:rejected|refused) (?:by|due to)|transaction rejected|\bblocked\b|not want (?:to|your)/,
      "Zoho, Tencent, Mimecast and others",
    ],
    [
      /only accepts? (?:e?-?mail|messages) from|accepts? (?:e?-?mail|messages) from .{0,40}only|moderat|\bgroup\b/,
      "lists and groups, Google Groups",
    ],
  ],
};
