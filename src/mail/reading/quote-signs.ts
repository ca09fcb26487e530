/** Introductions that say by their first word what they are, by language. Each also needs a date or an address. */
export const INTRODUCTIONS: readonly RegExp[] = [
  /^(?:On|At) .+ wrote ?:$/i,
  /^Le .+ a écrit ?:$/i,
  /^El .+ (?:escribió|va escriure) ?:$/i,
  /^Il .+ ha scritto ?:$/i,
  /^Em .+ escreveu ?:$/i,
  /^Am .+ schrieb\b.*:$/i,
  /^Op .+ schreef\b.*:$/i,
  /^(?:Den|På) .+ skrev\b.*:$/i,
];

/** Those that end with it. What stands above such a line without an empty one between may be no part of it. */
export const OPEN_INTRODUCTIONS: readonly RegExp[] = [
  /^.+ schrieb(?: am .+)? ?:$/i,
  /^.+ (?:pisze|napisał|napisała|napisał\(a\)) ?:$/i,
  /^.+ (?:napsal|napsala|napsal\(a\)|napísal|napísal\(a\)) ?:$/i,
  /^.+ kirjoitti ?:$/i,
  /^.+ (?:пишет|написал|написала|писал|писала|пише)\b.*:$/i,
  /^.+ şunu yazdı ?:$/i,
  /^.+ ezt írta(?: \(időpont: .+\))? ?:$/i,
  /^.+ a scris ?:$/i,
  /^.+写道 ?[：:]$/,
  /^.+のメッセージ ?[：:]$/,
  /^.+(?:작성|님이 작성) ?:$/,
  /^.+<[^<>\s]+@[^<>\s]+>.{0,20}[：:]$/,
];

/** What tells an introduction from a sentence that ends with a colon: an address, a time of day, a date or a year. */
export const DATED = /@|\d{1,2}[:.h]\d{2}|\d{1,2}[/-]\d{1,2}|\d{4}/;

/** "-----Original Message-----" and the like. */
export const SEPARATOR =
  /^-{2,20} ?(?:original message|forwarded message|ursprüngliche nachricht|weitergeleitete nachricht|message d['’]origine|message original|mensaje original|mensagem original|messaggio originale|oorspronkelijk bericht|oprindelig besked|originalmeddelande|wiadomość oryginalna|исходное сообщение|原始邮件|元のメッセージ) ?-{2,20}$/i;

/** The author's line of a header block as Outlook puts it above a quoted mail. */
export const BLOCK_FROM =
  /^[*> ]{0,3}(?:From|Von|De|De la|Da|Van|Från|Fra|Od|Feladó|Lähettäjä|Kimden|От|Від|Από|差出人|发件人|寄件者|보낸 사람) ?[:：]/i;
/** Its other lines. */
export const BLOCK_OTHER =
  /^[*> ]{0,3}(?:Sent|Date|To|Subject|Gesendet|Datum|An|Betreff|Envoyé|À|Objet|Enviado|Enviado el|Enviada|Enviada em|Para|Asunto|Assunto|Inviato|Oggetto|Verzonden|Aan|Onderwerp|Skickat|Till|Ämne|Sendt|Til|Emne|Wysłano|Data|Temat|Odesláno|Komu|Předmět|Elküldve|Címzett|Tárgy|Lähetetty|Vastaanottaja|Aihe|Gönderildi|Kime|Konu|Trimis|Către|Subiect|Отправлено|Кому|Тема|Надіслано|Στάλθηκε|Προς|Θέμα|送信日時|宛先|件名|发送时间|收件人|主题|寄件日期|收件者|主旨|보낸 날짜|받는 사람|제목) ?[*]? ?[:：]/i;

/** What each of the lines below begins with, so that any other line costs one look. */
export const SIGNATURE_START = /^[-_SGEIVOHTDiОW发]/i;

/** The line above a signature (RFC 3676 §4.3), as often without its space. */
export const SIGNATURE = /^--\s?$/;

/** Lines that a telephone or a list puts below a mail; a sentence or a divider may look like one. */
export const FOOTERS: readonly RegExp[] = [
  /^_{2,}$/,
  /^(?:Sent from|Sent via|Get Outlook for|Sent with (?=\[?(?:Proton|Spark|Airmail|Mailbird)\b)) ?\S.{0,80}$/i,
  /^(?:Gesendet (?:von|mit)|Von meinem(?:\/meiner)? .+ gesendet)\b.{0,80}$/i,
  // What `Get Outlook for` is elsewhere: a verb before or behind, and the address of the store, which no sentence has.
  /^(?:\S{2,15} ){0,4}Outlook (?:für|pour|para|per|voor) (?:iOS|Android)(?: \S{2,15})? ?<https:.{0,80}$/i,
  /^Envoyé (?:de|depuis|à partir de) .{1,80}$/i,
  /^Enviado (?:desde|do|de) .{1,80}$/i,
  /^Inviato da .{1,80}$/i,
  /^(?:Verzonden|Verstuurd) vanaf .{1,80}$/i,
  /^(?:Skickat från|Sendt fra) .{1,80}$/i,
  /^Отправлено (?:с|из) .{1,80}$/i,
  /^Wysłane z .{1,80}$/i,
  /^iPhone ?から送信$/,
  /^发自.{1,80}$/,
];
