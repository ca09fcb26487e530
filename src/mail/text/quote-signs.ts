/** Introductions that are known by their first word, by language. Each also needs a date or an address. */
export const INTRODUCTIONS: readonly RegExp[] = [
  /^(?:On|At) .+ wrote ?:$/i,
  /^In a message dated .+ writes ?:$/i,
  /^In einer e-?mail vom .+ schreibt .+:$/i,
  /^Dans un (?:e-?mail|message) daté du .+ (?:a écrit|écrit) ?:$/i,
  /^Le .+ a écrit ?:$/i,
  /^El .+ (?:escribió|va escriure) ?:$/i,
  /^Il .+ ha scritto ?:$/i,
  /^Em .+ escreveu ?:$/i,
  /^Am .+ (?:schrieb\b.*|hat .+ folgendes geschrieben ?):$/i,
  /^Op .+ (?:schreef\b.*|heeft .+ het volgende geschreven ?):$/i,
  /^(?:Den|På) .+ skrev\b.*:$/i,
  /^Wiadomość napisana przez .+:$/i,
];

/** Introductions that are known by their end. A line right above one may not belong to it. */
export const OPEN_INTRODUCTIONS: readonly RegExp[] = [
  /^.+ (?:schrieb(?: am .+)?|hat(?: am .+)? geschrieben|schreef op .+|a écrit le .+|ha scritto il .+) ?:$/i,
  /^.+ (?:pisze|napisał|napisała|napisał\(a\)) ?:$/i,
  /^.+ (?:napsal|napsala|napsal\(a\)|napísal|napísal\(a\)) ?:$/i,
  /^.+ kirjoitti(?: .+)? ?:$/i,
  /^.+ (?:пишет|написал|написала|писал|писала|пише)\b.*:$/i,
  /^.+ şunu yazdı ?:$/i,
  /^.+ ezt írta(?: \(időpont: .+\))? ?:$/i,
  /^.+ a scris ?:$/i,
  /^.+写道 ?[：:]$/,
  /^.+のメッセージ ?[：:]$/,
  /^.+(?:작성|님이 작성) ?:$/,
];

/** An address at the end, in any language: programs break a line before or within it. A sentence may end so, too. */
export const ADDRESS_AT_END = /<\s?[^<>\s]+@[^<>\s]+>.{0,20}[：:]$/;
/** Introductions that are known by a word anywhere, because it may precede the date. */
export const ADDRESS = /<\s?[^<>\s]+@[^<>\s]+>/;
/** A time of day, in any digits. */
export const TIMED = /\p{Nd}{1,2}[:.h]\p{Nd}{2}/u;

/** Signs of an introduction, unlike a sentence that ends with a colon: an address, a time of day, a date or a year. */
export const DATED = /@|\d{1,2}[:.h]\d{2}|\d{1,2}[/-]\d{1,2}|\d{4}/;

/** A date with its year, in digits. */
export const FULL_DATE = /\d{1,2}[./-] ?\d{1,2}[./-] ?\d{2,4}|\d{4}[./-] ?\d{1,2}[./-] ?\d{1,2}|\d{4}年/;
/** A year, in any digits. */
export const YEAR = /(?<!\p{Nd})(?:19|20|١٩|٢٠)\p{Nd}{2}(?!\p{Nd})/u;

/** A line between two rows of marks, with the words between them. */
export const RULED = /^[-=_*]{2,60} ?([^-=_*].{1,220}?) ?[-=_*]{2,60}$/;
/** The line of HCL Notes above a quoted message: "Ben Example ---14.11.2023 22:13:11---Hello Ana". */
export const NOTES =
  /^.{1,100}? ?-{2,4} ?\d{1,4}[./-]\d{1,2}[./-]\d{2,4} \d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?: ?[AP]M)? ?-{2,4}/i;

/** "-----Original Message-----" and similar lines. */
export const SEPARATOR =
  /^-{2,20} ?(?:original message|forwarded message|original appointment|ursprüngliche (?:nachricht|mail)|original-?nachricht|weitergeleitete nachricht|message d['’]origine|(?:message|mail) original|message transféré|mensaje original|mensaje reenviado|mensagem original|mensagem encaminhada|messaggio originale|messaggio inoltrato|oorspronkelijk bericht|doorgestuurd bericht|oprindelig (?:besked|meddelelse)|opprinnelig melding|videresendt (?:besked|meddelelse|melding)|originalmeddelande|ursprungligt meddelande|vidarebefordrat meddelande|alkuperäinen viesti|välitetty viesti|oryginalna wiadomość|wiadomość przekazana|původní zpráva|pôvodná správa|eredeti üzenet|mesaj original|orijinal mesaj|wiadomość oryginalna|исходное сообщение|пересылаемое сообщение|原始邮件|回复的原邮件|转发的邮件|元のメッセージ|転送メッセージ) ?-{2,20}$/i;

/** The line of a help desk, below which its own message stands. */
export const REPLY_ABOVE =
  /^[-=_*#~>]{2,20} ?.{0,30}\b(?:(?:reply|type|write|respond|answer)\b.{0,20} above (?:this|the) line|(?:antwort|schreiben).{0,20} (?:oberhalb|über) dieser (?:zeile|linie)|(?:répon|écri).{0,20} (?:au-dessus|ci-dessus) de cette ligne|(?:respond|escrib|responda).{0,20} (?:encima|arriba|acima) (?:de esta línea|desta linha)|(?:rispond|scriv).{0,20} sopra (?:a )?questa (?:linea|riga)|boven deze (?:lijn|regel)).{0,20} ?[-=_*#~<]{2,20}$/i;

/** The line that Apple Mail puts above a forwarded message, or Orange above a quoted one. */
export const FORWARD =
  /^(?:Begin forwarded message|Anfang der weitergeleiteten Nachricht|Début du message (?:transféré|réexpédié)|Inicio del mensaje reenviado|Inizio messaggio inoltrato|Início da mensagem (?:reencaminhada|encaminhada)|Begin doorgestuurd bericht|Начало переадресованного сообщения|开始转发的邮件|転送されたメッセージ) ?[:：]$|^Message du \d{1,2}\/\d{1,2}\/\d{2,4} \d{1,2}:\d{2}$/i;

/** The author's line of a header block that Outlook puts above a quoted message. */
export const BLOCK_FROM =
  /^[*>|\t ]{0,12}(?:From|Von|De|Frá|Saatja|Nuo|De la|Da|Van|Från|Fra|Od|Feladó|Lähettäjä|Kimden|От|Від|Από|Từ|Dari|จาก|من|מאת|差出人|发件人|寄件者|보낸 사람) ?[:：]/i;
/** The other lines of that header block. */
export const BLOCK_OTHER =
  /^[*>|\t ]{0,12}(?:Sent|Date|To|Cc|Envoyé le|Message du|Copie(?: à)?|Sujet|A|Do|DW|Dato|Päivämäärä|Päiväys|Kopio|Kopia|Kopi|Saadetud|Teema|Išsiųsta|Tema|Efni|Subject|Gesendet|Datum|An|Betreff|Envoyé|À|Objet|Enviado|Enviado el|Enviada|Enviada em|Fecha|Para|Asunto|Assunto|Inviato|Oggetto|Verzonden|Aan|Onderwerp|Skickat|Till|Ämne|Sendt|Til|Emne|Wysłano|Data|Temat|Odesláno|Komu|Předmět|Elküldve|Címzett|Tárgy|Lähetetty|Vastaanottaja|Aihe|Gönderildi|Kime|Konu|Trimis|Către|Subiect|Отправлено|Кому|Тема|Надіслано|Στάλθηκε|Προς|Θέμα|送信日時|宛先|件名|发送时间|收件人|主题|寄件日期|收件者|主旨|보낸 날짜|받는 사람|제목|Poslano|Prima|Za|Zadeva|Predmet|Odoslané|Enviat el|Assumpte|Изпратено|До|Относно|Đã gửi|Ngày|Đến|Tới|Chủ đề|Dikirim|Tanggal|Kepada|Perihal|ส่ง|ถึง|เรื่อง|تاريخ الإرسال|تم الإرسال|التاريخ|إلى|الموضوع|נשלח|תאריך|אל|עבור|נושא|日期|日付) ?[*]? ?[:：]/i;

/**
 * Words of that block that a letter may also have, above a journey or a period. If there are no others, an address
 * decides.
 */
export const BLOCK_COMMON =
  /^[*>|\t ]{0,12}(?:Date|To|Datum|An|À|A|Para|Fecha|Data|Dato|Aan|Till|Til|Do|Za|До|日期|日付|إلى|אל) ?[*]? ?[:：]/i;

/** The line above a signature (RFC 3676 §4.3), often without its space. */
export const SIGNATURE = /^--\s?$/;
