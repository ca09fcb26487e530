import type { PhraseGroup } from "./phrase-group.ts";

/** The mailbox has no room. */
export const FULL: PhraseGroup = {
  outcome: "soft",
  category: "mailbox-full",
  phrases: [
    [
      /(?:mail ?box|mail ?folder|inbox|in-box|account|user|recipient|mail ?drop|maildir|storage|disk|quota)\b.{0,50}?(?:\bfull\b|over (?:its |the |their |his )?(?:allowed |disk |storage |mail )?(?:quota|limit|allocation|size)|over ?quota|out of (?:storage|space|disk)|no (?:more )?(?:disk )?(?:space|room))/,
      "Gmail OverQuota, Exchange, Dovecot, qmail, mail.ru",
    ],
    [
      /(?:mail ?box|mail ?folder|inbox|storage|disk|quota|space)\b.{0,50}?(?:limit|size|space|storage|quota).{0,20}exceed|(?:mail ?box|account|user|recipient)\b.{0,50}?exceed.{0,30}(?:quota|storage|space|size|mailbox limit)|exceed(?:s|ed|ing)? .{0,25}(?:quota|mailbox)/,
      "Exchange, Yandex, Courier",
    ],
    [
      /exceeded storage allocation|would exceed|(?:storage|mailbox|quota) (?:size )?limit.{0,12}reached|exhausted .{0,20}storage|error writing message: file too large/,
      "RFC 5321 §4.2.3 552",
    ],
    [
      /over (?:(?:his|her|its|their|the) )?quota|overquota|quota\b.{0,40} exhausted|(?:space|quota) (?:is |has been )?(?:used up|depleted)|quota (?:(?:limit )?(?:is )?exceed|violation|is full)|exceed .{0,20}hard limit|quotaexceeded|mail ?box limit exc?eeded|(?:disk|mailbox) quota|mailbox_full/,
      "Cyrus, Dovecot, NetEase, Exchange STOREDRV",
    ],
    [
      /insufficient (?:disk|mailbox|quota|storage)|(?:not|n't) (?:have )?enough (?:storage |disk |free )?(?:space|room)|space (?:is )?not enough|zu ?viele mails|too many messages (?:in|on) (?:the |this |his )?(?:mailbox|server|inbox|folder)|(?:mail ?)?(?:box|folder|inbox) is full/,
      "Sendmail local mailer, Notes, Cyrus",
    ],
    [
      /容量|メールボックスが(?:一杯|いっぱい)|空[间間]不足|(?:邮箱|信箱|邮件箱|空间)已[满滿]|(?:편지함|사서함|메일함).{0,20}(?:가득|초과|꽉)|용량/,
      "Japanese, Chinese and Korean providers",
    ],
    [
      /mail file (?:has exceeded|is over)|reached .{0,20}(?:(?:storage|mail ?box|quota|size) limit|maximum (?:allowed )?(?:size|capacity|storage|quota))|(?:mail ?box|inbox)\b.{0,30}(?:reached (?:(?:its|the|his) limit|(?:its |full |maximum )?capacity)|too full|\boverflow)|insufficient space|too much mail (?:in|stored in) (?:the|his|its)|messages in .{0,30}mailbox exceed|no free space|blocks limit exceeded|inode limit/,
      "Domino, cPanel and others",
    ],
    [
      /postfach.{0,40}\bvoll|speicherplatz.{0,30}(?:überschritten|ueberschritten)|bo[îi]te.{0,60}pleine|(?:buz[oó]n|casilla).{0,60}\bllen[oa]|caixa.{0,60}\bcheia|(?:casella|cassetta).{0,60}\bpiena|(?:ящик|скриньк).{0,60}(?:переполнен|заполнен|переповнен|заповнен)|skrzynk[ai].{0,60}(?:pełn|przepe[łl]nion)|schr[áa]nka.{0,60}pln|postvak.{0,60}\bvol\b|posta kutusu.{0,60}dolu|posta(?:fi[óo]k|l[áa]d).{0,70}(?:megtelt|betelt)|postilaatikko.{0,60}täynnä|post(?:l[åa]d|kasse|boks).{0,70}ful[ld]|cutia.{0,60}plin|γραμματοκιβώτιο.{0,60}πλήρες|kotak (?:surat|masuk).{0,60}penuh|hộp thư.{0,60}đầy|(?:quota|boîte).{0,30}dépass|dépass.{0,20}quota|(?:cuota|cota).{0,30}(?:excedid|superad|ultrapassad)|quota.{0,20}superat|kontingent.{0,30}überschritten|превышена квота|квота.{0,30}(?:превышена|исчерпана)/,
      "Exchange and providers in the languages of Europe, in Indonesian and Vietnamese",
    ],
  ],
};

/** The mailbox is unavailable for a time. */
export const TEMPORARY: PhraseGroup = {
  outcome: "soft",
  category: "recipient",
  phrases: [
    [
      /(?:user|account|mailbox|address|recipient)\b.{0,60}(?:temporar(?:y|ily)|currently) (?:locked|suspended|disabled|blocked|unavailable|inactive)|\b(?:locked|suspended|disabled) temporarily/,
      "Amazon SES and others: locked for a time",
    ],
  ],
};

/** The mailbox does not exist. */
export const NO_MAILBOX: PhraseGroup = {
  outcome: "hard",
  category: "recipient",
  phrases: [
    [
      /(?:users?|recipient|mail ?box|account|address|addressee|alias|destination|destinatario|person|entry|customer|local[- ]?part|username|e-?mail(?: account| address)?)\b(?:[^.]|\.(?! )){0,80}?(?:\bunknown\b|\bunkown\b|non[- ]?exist|inexist|nonexistent|possibly incorrect|\bmoved|(?:been|was|is) removed)/,
      "Postfix, Exim, Courier, Sendmail, MDaemon",
    ],
    [
      /(?:users?|recipient|mail ?box|account|address|addressee|alias|person|entry|customer|local[- ]?part|username|e-?mail(?: account| address)?)\b(?:[^.]|\.(?! )){0,80}?not (?:be )?(?:found|known|exist|listed|valid|here|present|registered|our|a valid|in (?:the )?(?:list|directory|database))/,
      "Comcast, mail.ru, Exchange, Domino, Tencent",
    ],
    [
      /(?:users?|recipient|mail ?box|account|address|addressee|alias|destination|person|customer|username|e-?mail(?: account| address)?)\b(?:[^.]|\.(?! )){0,80}?(?:does ?n[o']t (?:exist|have)|doesn?t exist|does not (?:exist|have)|do(?:es)? not (?:have|list)|is? no(?:t| longer) (?:exist|valid|active|available|in use|on server|here|with)|no longer)/,
      "Gmail, iCloud, Dovecot, Proton, Yahoo",
    ],
    [
      /recip(?:ient)?notfound|address_not_found|nosuch(?:user|mailbox|recipient)|user_?unknown|user_not_found|resolver\.adr\./,
      "Exchange, Outlook: names of the error",
    ],
    [
      /(?:\bno|not a|not an|unknown|invalid|nonexistent|non-existent|bad|undefined|unrecognized|illegal|incorrect|wrong) (?:such |valid |known |local |virtual |email |e-mail |mail |mailbox |or unknown ){0,4}(?:users?|recipients?|mailbox|mailboxes|account|address|addresses|addressee|alias|person|login|local part|name here|destination)\b/,
      "Exim, Sendmail, qmail, IMail, Barracuda, Zoho, Mimecast",
    ],
    [
      /(?:this|that|the) (?:user|account|address|recipient|email|mailbox) (?:is not (?:valid|known|active|available|found|in |an? )|isn'?t|does ?n[o']t (?:exist|have)|has been (?:removed|deleted|moved)|is an? un|is inv|could not be found|was not found|cannot be found)/,
      "Yahoo, Zoho, Lotus",
    ],
    [
      /there is no (?:one|such|user|mailbox|account)|(?:do|does) not have (?:an?|any|that|this|such an?) (?:user|mailbox|recipient)\b|no mail[- ]?box (?:here|by that name|found|available|for)|no one (?:here )?(?:by that name|with that)|does not have (?:an? )?(?:final )?e-?mail (?:delivery|address|account)|no such (?:person|mail ?drop|(?:user ?)?ids?\b)|does ?n[o']t handle mail for (?:that|this) (?:user|address|recipient)/,
      "qmail, Exim, phquery, and POP3 servers that name their maildrops",
    ],
    [
      /unknown[- ](?:local[- ]part|user|recipient|mailbox|address)|unknown or illegal|addressee unknown|not known (?:here|at this)/,
      "Sendmail, AT&T, Lotus",
    ],
    [/unrout(?:e|ea)able (?:mail )?address|no matches to nameserver query/, "Exim, phquery"],
    [
      /not our customer|user not local|(?:owner of this )?mailbox has changed|mailbox owner (?:has |is )?(?:changed|unknown|different|gone)/,
      "Comcast; RFC 5321 §4.2.3 551; RFC 7293 §6 (a mailbox of somebody else now)",
    ],
    [
      /address rejected: (?:user|undeliverable|unverified|no such|invalid)|undeliverable address(?! ?:)/,
      "Postfix recipient verification, Vade, Proofpoint",
    ],
    [
      /could(?: not|n'?t) (?:be )?(?:find|found) (?:any )?(?:mailbox|user|the recipient)|(?:can'?t|cannot|could not|couldn'?t|unable to) (?:find|locate) (?:(?:an?|any|the|this|that|such|local|alias) ){0,4}(?:user|mailbox|recipient|alias)\b|wasn'?t found (?:at|in)|couldn'?t be (?:found|delivered to)|address (?:does|is) not/,
      "Outlook, Microsoft 365",
    ],
    [
      /@[^\s<>]{1,100}>? is no longer (?:valid|active|available|in use)/,
      "Yahoo: the address that is no more",
    ],
    [
      /invalid (?:final )?delivery user|invalid-recipient|invalid e?-?mail recipients?|recipients? (?:are|is) (?:all )?invalid|mailbox name not allowed/,
      "PowerMTA, Zoho, RFC 5321 §4.2.3 553",
    ],
    [
      /not listed in (?:domino|public|the)|not unique\. {1,2}several matches|\bnot (?:found |listed |present |registered )?in (?:(?:our|the|this|any) )?(?:\w+ )?(?:directory|database|address book|ldap|recipient (?:list|table|map))|(?:doesn'?t|does not) have an? .{0,30}account|\bnot a member of (?:the |this )?domain|(?:user|recipient) <[^<>]{1,100}> not ok\b|this email address .{0,30}not/,
      "Domino, Yahoo",
    ],
    [
      /destinataire.{0,80}?(?:inconnu|invalide|inexistant)|adresse.{0,80}?(?:invalide|inexistante|inconnue)|(?:utilisateur|compte|bo[îi]te).{0,80}?(?:inconnu|inexistant)|(?:adresse|destinataire|utilisateur|compte|bo[îi]te).{0,80}?n.existe pas|(?:adresse|destinataire|utilisateur|compte)\b.{0,60}introuvable|ne figure pas dans/,
      "French: Orange, laposte.net, Exchange, Domino",
    ],
    [
      /(?:benutzer|empf(?:ä|ae?)nger|adressat|adresse|postfach|konto).{0,80}?(?:unbekannt|existiert nicht|nicht (?:gefunden|bekannt|vorhanden|im domino|in der organisation))/,
      "German: T-Online, United Internet, Exchange, Domino",
    ],
    [
      /(?:usuario|destinatario|direcci[óo]n|cuenta|buz[oó]n).{0,80}?(?:desconocid|no existe|inv[áa]lid|no encontrad|inexistente)|no se (?:ha )?encontr[óoa]|(?:usu[áa]rio|destinat[áa]rio|caixa postal|\bconta\b).{0,80}?(?:inexistente|desconhecid|inv[áa]lid)|n[ãa]o (?:existe|foi encontrad|p[ôo]de ser encontrad)/,
      "Spanish and Portuguese: Telefónica, UOL",
    ],
    [
      /(?:utente|destin(?:atario|\.)).{0,80}?(?:sconosciut|errato|inesistente)|(?:indirizzo|casella).{0,80}?(?:inesistente|non esiste)|indirizzo.{0,60}non .{0,12}trovat|impossibile trovare l.indirizzo/,
      "Italian: Libero",
    ],
    [
      /не существует|не найден|не удалось найти|недоступен|неверный адрес|нет такого|такого пользователя|не зарегистрирован|не знайдено|не існує/,
      "Russian and Ukrainian: mail.ru, Yandex",
    ],
    [
      /宛先(?:不明|が)|存在しません|存在しない|見つかりません|ユーザー?(?:が)?不明|アドレスが(?:間違|無効)/,
      "Japanese carriers and providers",
    ],
    [/用户不存在|收件人不存在|该用户|不存在|找不到|查無此/, "Chinese: Tencent, NetEase, Coremail"],
    [/찾을 수 없|존재하지 않|없는 (?:사용자|계정|주소)/, "Korean: Exchange, Naver"],
    [
      /(?:użytkownik|odbiorca|adres|konto).{0,60}nieznan|nie istnieje|nie ma takiego|nie znaleziono|neexistuje|nebyl[ao]? nalezen|onbekende? (?:gebruiker|adres)|gebruiker onbekend|bestaat niet|(?:adres|gebruiker|geadresseerde).{0,60}niet (?:worden )?gevonden|nie (?:można|udało się) (?:odnaleźć|znaleźć)|nie odnaleziono|nelze (?:najít|nalézt)/,
      "Polish, Czech, Dutch",
    ],
    [
      /ok[äa]nd mottagare|ukendt modtager|ukjent mottaker|bulunamad|tanımlı değil|nem (?:található|létezik)|ei (?:löytynyt|löydy|ole olemassa)|(?:kunde inte|kan inte) hittas|gick inte att hitta|(?:kunne|kan) ikke (?:findes|finnes|finde|finne)|finner ikke|finns inte|(?:blev|ble) ikke fun(?:det|net)|find(?:es|nes) ikke|finnes ikke|nu a fost găsit|δεν (?:βρέθηκε|υπάρχει|ήταν δυνατή η εύρεση)|tidak (?:ditemukan|dapat ditemukan)|không (?:tìm thấy|tồn tại)|لم يتم العثور|ไม่พบ|לא נמצא/,
      "Turkish, Hungarian, Finnish, Swedish, Danish, Norwegian, Romanian, Greek, Indonesian, Vietnamese, Arabic, Thai, Hebrew",
    ],
    [
      /recipient name is not recogni[sz]ed|unrecogni[sz]ed o\/r name|o\/r name.{0,30}(?:unrecogni[sz]ed|invalid|ambiguous)|name was not found at/,
      "X.400 (RFC 1327 §5.3: unrecognised-OR-name), FirstClass",
    ],
  ],
};

/** The mailbox is disabled (RFC 3463 X.2.1). */
export const DISABLED: PhraseGroup = {
  outcome: "hard",
  category: "recipient",
  phrases: [
    [
      /(?:account|mailbox|user|address|recipient|inbox|e-?mail)\b(?:[^.]|\.(?! )){0,60}?\b(?:disabled|inactive|deactivated|suspended|discontinued|terminated|closed|deleted|expired account|dormant|abandoned|due to inactivity|not (?:been )?activated?|not enabled(?! (?:e-?)?mail)|locked|on hold|frozen|decommissioned|retired)\b/,
      "Gmail, Yahoo, mail.ru, Exchange, vpopmail",
    ],
    [
      /\b(?:disabled|inactive|deactivated|suspended|closed|discontinued|terminated|expired|dormant) (?:e?-?mail ?)?(?:account|mailbox|user|address|recipient)|user(?:name)? (?:has been )?(?:suspended|disabled)|\b(?:account|mailbox|address) (?:has |is )?expired|<[^<>]{1,100}> is (?:now )?disabled|disableduser/,
      "AOL, Sina",
    ],
    [/address no longer accepts mail|no longer accepts? (?:mail|messages)/, "mailboxes that were given up"],
    [
      /\b(?:employee|person|user|recipient|addressee) (?:has |is )?(?:left|retired|deceased)\b|\bleft (?:the|our|this) (?:company|organi[sz]ation|firm|university)|@\S{1,100} has moved\b/,
      "people who are gone",
    ],
    [
      /(?:casilla|buz[oó]n|cuenta|usuario).{0,60}(?:expirad|inactiv|suspendid|desactivad|deshabilitad|cancelad|cerrad)|(?:\bconta\b|caixa postal|usu[áa]rio).{0,60}(?:inativ|suspens|desativad|cancelad)|(?:casella|utente|indirizzo (?!ip\b)).{0,60}(?:disatt+iv|bloccat|sospes|disabilitat|non attiv)/,
      "Spanish, Portuguese, Italian: Libero and others",
    ],
    [
      /(?:bo[îi]te|compte).{0,60}(?:d[ée]sactiv|suspendu|cl[ôo]tur)|(?:postfach|konto|mailbox).{0,60}(?:deaktiviert|gel[öo]scht|geschlossen)|(?:konto|skrzynk).{0,60}(?:zablokowan|nieaktywn|usuni[ęe]t)|(?:ящик|аккаунт|уч[её]тн).{0,60}(?:заблокирован|отключ[её]н|удал[её]н|неактив)/,
      "French, German, Polish, Russian",
    ],
  ],
};

/** The domain does not exist or takes no mail (RFC 7505). */
export const NO_DOMAIN: PhraseGroup = {
  outcome: "hard",
  category: "recipient",
  phrases: [
    [
      /(?:host|domain)(?: or domain)?(?: name)? (?:not found|unknown|does ?n[o']t exist|does not exist|is unknown|invalid|couldn'?t be found)/,
      "Postfix, Sendmail, Exchange",
    ],
    [
      /(?:no such|unknown|invalid|illegal|bad|nonexistent|unable to (?:find|resolve|look ?up)|unresolvable|cannot (?:find|resolve)) (?:destination |recipient |mail )?(?:host|domain|mail server)|find the recipient domain/,
      "Barracuda, Exim, Gmail",
    ],
    [
      /nxdomain|domain not found|host (?:name |\S{1,255} )?not found|couldn'?t find any host|hostunknown|name service error.{0,60}host not found/,
      "Postfix, qmail, Gmail",
    ],
    [
      /(?:\bno|couldn'?t find any|not find any) (?:mx|mail exchanger|relevant answers|valid mx)|had no relevant answers|illegal host\/domain|couldn'?t find a mail exchanger|all relevant mx records point to non-existent|domain (?:has )?no (?:mail exchangers|mx)/,
      "Gmail, Exim, qmail",
    ],
    [
      /null ?mx|indicated no smtp service|no mail hosts? for (?:the |this )?domain|does ?n[o']t (?:receive|accept) (?:any )?(?:e?-?mail|mail)(?! (?:from|in|of|with|that|larger|over))|does not accept (?:e?-?mail|mail)(?! (?:from|in|of|with|that|larger|over))|never accepts mail/,
      "RFC 7505: a domain that takes no mail",
    ],
    [
      /domain has expired|\bdomain is not reachable/,
      "registrars; Outlook.com, of a domain without hosts for mail",
    ],
  ],
};

/**
 * Words of RFC 5321 §4.2.3. After 550 the mailbox does not exist, after 450 it is busy. The RFC uses them for a rule
 * too ("no access, or command rejected for policy reasons").
 */
export const UNAVAILABLE: PhraseGroup = {
  outcome: "hard",
  category: "recipient",
  unlessPolicy: true,
  phrases: [
    [/mailbox (?:unavailable|not available|is unavailable)/, "Outlook.com, United Internet, Amazon SES"],
    [
      /recipient (?:address )?rejected: access denied(?! (?:for|from|to|due|by)\b)/,
      "Exchange Online 5.4.1: no such mailbox; Postfix 5.7.1: check_recipient_access",
    ],
    [
      /<[^<>]{3,100}> recipient rejected(?! (?:for|from|due|by|because)\b)|^(?:5\d\d[ -])?(?:5\.\d{1,3}\.\d{1,3} )?(?:<?[^\s<>]{1,100}@[^\s<>]{1,100}>?:? (?:recipient )?|recipient )rejected\.?(?:$| \(in reply to )/,
      "Symantec.cloud, Cox: the address, rejected, and no other reason",
    ],
  ],
};

/** The address is called invalid or unavailable. */
export const INVALID: PhraseGroup = {
  outcome: "hard",
  category: "recipient",
  phrases: [
    [
      /mailbox (?:(?:is )?inactive|does)|invalid mailbox|\b(?:account|recipient) (?:is )?unavailable/,
      "Outlook.com, Amazon SES",
    ],
    [
      /(?<!(?:sender|from|ip|your|return|reply-to|client|helo|source) )\b(?:recipient|user|address|account|alias|mailbox) (?:name )?(?:is |was )?(?:invalid|unrecogni[sz]ed|illegal)\b/,
      "the address, and that it is none",
    ],
  ],
};
