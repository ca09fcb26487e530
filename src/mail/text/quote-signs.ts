/** Introductions that are known by their first word, by language. Each also needs a date or an address. */
export const INTRODUCTIONS: readonly RegExp[] = [
  /^(?:On|At) .+ wrote ?:$/i,
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
  /^.+ schrieb(?: am .+)? ?:$/i,
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

/** "-----Original Message-----" and similar lines. */
export const SEPARATOR =
  /^-{2,20} ?(?:original message|forwarded message|original appointment|ursprüngliche (?:nachricht|mail)|original-nachricht|weitergeleitete nachricht|message d['’]origine|(?:message|mail) original|message transféré|mensaje original|mensaje reenviado|mensagem original|mensagem encaminhada|messaggio originale|messaggio inoltrato|oorspronkelijk bericht|doorgestuurd bericht|oprindelig besked|originalmeddelande|wiadomość oryginalna|исходное сообщение|пересылаемое сообщение|原始邮件|回复的原邮件|转发的邮件|元のメッセージ|転送メッセージ) ?-{2,20}$/i;

/** The line that Apple Mail puts above a forwarded message. */
export const FORWARD =
  /^(?:Begin forwarded message|Anfang der weitergeleiteten Nachricht|Début du message (?:transféré|réexpédié)|Inicio del mensaje reenviado|Inizio messaggio inoltrato|Início da mensagem (?:reencaminhada|encaminhada)|Begin doorgestuurd bericht|Начало переадресованного сообщения|开始转发的邮件|転送されたメッセージ) ?[:：]$/i;

/** The author's line of a header block that Outlook puts above a quoted message. */
export const BLOCK_FROM =
  /^[*> ]{0,3}(?:From|Von|De|De la|Da|Van|Från|Fra|Od|Feladó|Lähettäjä|Kimden|От|Від|Από|Từ|Dari|จาก|من|מאת|差出人|发件人|寄件者|보낸 사람) ?[:：]/i;
/** The other lines of that header block. */
export const BLOCK_OTHER =
  /^[*> ]{0,3}(?:Sent|Date|To|Cc|Subject|Gesendet|Datum|An|Betreff|Envoyé|À|Objet|Enviado|Enviado el|Enviada|Enviada em|Fecha|Para|Asunto|Assunto|Inviato|Oggetto|Verzonden|Aan|Onderwerp|Skickat|Till|Ämne|Sendt|Til|Emne|Wysłano|Data|Temat|Odesláno|Komu|Předmět|Elküldve|Címzett|Tárgy|Lähetetty|Vastaanottaja|Aihe|Gönderildi|Kime|Konu|Trimis|Către|Subiect|Отправлено|Кому|Тема|Надіслано|Στάλθηκε|Προς|Θέμα|送信日時|宛先|件名|发送时间|收件人|主题|寄件日期|收件者|主旨|보낸 날짜|받는 사람|제목|Poslano|Prima|Za|Zadeva|Predmet|Odoslané|Enviat el|Assumpte|Изпратено|До|Относно|Đã gửi|Ngày|Đến|Tới|Chủ đề|Dikirim|Tanggal|Kepada|Perihal|ส่ง|ถึง|เรื่อง|تاريخ الإرسال|تم الإرسال|التاريخ|إلى|الموضوع|נשלח|תאריך|אל|עבור|נושא|日期|日付) ?[*]? ?[:：]/i;

/**
 * Words of that block that a letter may also have, above a journey or a period. If there are no others, an address
 * decides.
 */
export const BLOCK_COMMON =
  /^[*> ]{0,3}(?:Date|To|Datum|An|À|A|Para|Fecha|Data|Aan|Till|Til|Do|Za|До|日期|日付|إلى|אל) ?[*]? ?[:：]/i;

/** Characters or words in each of the lines below, so that any other line is ruled out by one match. */
export const SIGNATURE_START =
  /^(?:[-_]|Sen[td]|Skickat|Ge[ts]|Von |Envoy|Enviad|Inviat|Ver[zs]|Отп|Wys|iP|发|Над|Изп|Od[eo]s|Posla|Läh|Kül|Στά|從|나|נ|أ)|Outlook /i;

/** The line above a signature (RFC 3676 §4.3), often without its space. */
export const SIGNATURE = /^--\s?$/;

/** Lines that a telephone or a list adds below a message. A sentence or a divider may look like one. */
export const FOOTERS: readonly RegExp[] = [
  /^_{2,}$/,
  /^(?:Sent from|Sent via|Get Outlook for|Sent with (?=\[?(?:Proton|Spark|Airmail|Mailbird)\b)) ?\S.{0,80}$/i,
  /^(?:Gesendet (?:von|mit)|Von meinem(?:\/meiner)? .+ gesendet)\b.{0,80}$/i,
  // `Get Outlook for` in other languages: a verb before or after it, and the store's address, which no sentence has.
  /^(?:\S{2,15} ){0,4}Outlook (?:für|pour|para|per|voor) (?:iOS|Android)(?: \S{2,15})? ?<https:.{0,80}$/i,
  /^Envoyé (?:de|depuis|à partir de) .{1,80}$/i,
  /^Enviado (?:desde|do|de) .{1,80}$/i,
  /^Inviato da .{1,80}$/i,
  /^(?:Verzonden|Verstuurd) vanaf .{1,80}$/i,
  /^(?:Skickat från|Sendt fra) .{1,80}$/i,
  /^Отправлено (?:с|из) .{1,80}$/i,
  /^Wysłane z .{1,80}$/i,
  /^(?:Надіслано|Изпратено) (?:з|от) .{1,80}$/i,
  /^(?:Odesláno|Odoslané) z .{1,80}$/i,
  /^(?:Poslano|Poslato) (?:s|z|sa) .{1,80}$/i,
  // Languages whose grammar inflects the device's name.
  /^(?:Lähetetty (?:iPhone|iPad)\p{L}{1,5}|iP(?:hone|ad)['’]umdan gönderildi|Küldve .{0,20}(?:iPhone|iPad)\S{0,6})$/iu,
  /^Στάλθηκε από (?:το|τη) .{1,80}$/i,
  /^iP(?:hone|ad) ?から送信$/,
  /^发自.{1,80}$/,
  /^從我的 ?.{1,40}傳送$/,
  /^나의 .{1,40}에서 보냄$/,
  /^נשלח מה-?.{1,60}$/,
  /^أ\p{M}?رسلت من .{1,60}$/u,
];
