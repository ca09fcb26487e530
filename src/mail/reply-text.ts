/** Characters of a text in which a quoted mail is looked for; a longer one is taken whole. */
export const MAX_REPLY_CHARS = 64 * 1024;
/** Characters of a line that may begin a quoted mail; bounds what each pattern can cost. */
const MAX_INTRO_CHARS = 300;
/** Lines over which mail programs break an introduction such as "On … wrote:". */
const MAX_INTRO_LINES = 3;
/** Lines below a "From:" among which the other lines of a quoted header are looked for. */
const HEADER_BLOCK_LINES = 4;

/** The line with which mail programs introduce the mail they quote, by language. Each also needs a digit or an "@". */
const INTRODUCTIONS: readonly RegExp[] = [
  /^(?:On|At) .+ wrote ?:$/i,
  /^Le .+ a écrit ?:$/i,
  /^El .+ escribió ?:$/i,
  /^Il .+ ha scritto ?:$/i,
  /^Em .+ escreveu ?:$/i,
  /^Am .+ schrieb\b.*:$/i,
  /^.+ schrieb(?: am .+)? ?:$/i,
  /^Op .+ schreef\b.*:$/i,
  /^(?:Den|På) .+ skrev\b.*:$/i,
  /^.+ (?:pisze|napisał|napisała|napisał\(a\)) ?:$/i,
  /^.+ kirjoitti ?:$/i,
  /^.+ (?:пишет|написал|написала|писал|писала)\b.*:$/i,
  /^.+写道 ?[：:]$/,
  /^.+のメッセージ ?[：:]$/,
  /^.+(?:작성|님이 작성) ?:$/,
  /^.+<[^<>\s]+@[^<>\s]+>.{0,20}[：:]$/,
];

/** "-----Original Message-----" and the like. */
const SEPARATOR =
  /^-{2,20} ?(?:original message|forwarded message|ursprüngliche nachricht|message d['’]origine|mensaje original|mensagem original|messaggio originale|oorspronkelijk bericht|oprindelig besked|originalmeddelande|wiadomość oryginalna|исходное сообщение|原始邮件|元のメッセージ) ?-{2,20}$/i;

/** First line of a header block as Outlook puts it above a quoted mail, and lines of which one must follow. */
const BLOCK_FROM = /^[*> ]{0,3}(?:From|Von|De|Da|Van|Från|Fra|Od|От|差出人|发件人) ?[:：]/i;
const BLOCK_OTHER =
  /^[*> ]{0,3}(?:Sent|Date|To|Subject|Gesendet|Datum|An|Betreff|Envoyé|À|Objet|Enviado|Enviada|Para|Asunto|Assunto|Inviato|Oggetto|Verzonden|Aan|Onderwerp|Skickat|Till|Ämne|Sendt|Til|Emne|Wysłano|Data|Temat|Отправлено|Кому|Тема|送信日時|宛先|件名|发送时间|收件人|主题) ?[*]? ?[:：]/i;

/** What each of the lines below begins with, so that any other line costs one look. */
const SIGNATURE_START = /^[-_SGEIV]/i;
/** Lines that begin a signature. */
const SIGNATURES: readonly RegExp[] = [
  /^--\s?$/,
  /^_{2,}$/,
  /^(?:Sent from|Sent via|Get Outlook for) \S.{0,80}$/i,
  /^(?:Gesendet (?:von|mit)|Von meinem .+ gesendet)\b.{0,80}$/i,
  /^Envoyé (?:de|depuis|à partir de) .{1,80}$/i,
  /^Enviado (?:desde|do) .{1,80}$/i,
  /^Inviato da .{1,80}$/i,
  /^(?:Verzonden|Verstuurd) vanaf .{1,80}$/i,
  /^(?:Skickat från|Sendt fra) .{1,80}$/i,
];

/**
 * The new part of a reply: without the mail quoted below it and the signature. A quoted block above the new part goes
 * too; an answer between quoted lines stays with them. The whole text where nothing else would be left.
 * The time taken is linear in the text's length.
 */
export function replyText(text: string): string {
  if (text.length > MAX_REPLY_CHARS) return text;
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const quote = quoteStart(lines);
  const above = withoutSignature(trimQuotedEnd(lines.slice(0, quote.at)));
  if (isBlank(above)) return underQuote(lines.slice(quote.end)) ?? text;
  const answersWithin =
    lines.slice(quote.end).some((line) => isQuoted(line)) && underQuote(lines.slice(quote.end)) !== null;
  return (answersWithin ? withoutSignature(lines) : above).join("\n").trim();
}

interface QuoteStart {
  /** First line of the introduction; the number of lines where nothing is quoted. */
  at: number;
  /** First line behind it. */
  end: number;
}

function quoteStart(lines: readonly string[]): QuoteStart {
  // Most texts quote nothing, and have no line that could end an introduction.
  const introduces = lines.some((line) => /[:：]$/.test(line.trimEnd()));
  for (const [at, line] of lines.entries()) {
    if (isHeaderBlock(lines, at) || isSeparator(line)) return { at, end: at + 1 };
    const span = introduces ? introduction(lines, at) : 0;
    if (span > 0) return { at, end: at + span };
  }
  return { at: lines.length, end: lines.length };
}

function isSeparator(line: string): boolean {
  return SEPARATOR.test(line.trim().slice(0, MAX_INTRO_CHARS));
}

/** Lines that the introduction beginning here takes; 0 where none begins. */
function introduction(lines: readonly string[], at: number): number {
  let joined = "";
  for (let span = 1; span <= MAX_INTRO_LINES; span++) {
    const line = (lines[at + span - 1] ?? "").trim();
    if (line === "" || isQuoted(line) || joined.length + line.length > MAX_INTRO_CHARS) return 0;
    joined = joined === "" ? line : `${joined} ${line}`;
    if (/[:：]$/.test(line) && /[\d@]/.test(joined) && INTRODUCTIONS.some((pattern) => pattern.test(joined)))
      return span;
  }
  return 0;
}

function isHeaderBlock(lines: readonly string[], at: number): boolean {
  const line = lines[at] ?? "";
  if (line.length > MAX_INTRO_CHARS || !BLOCK_FROM.test(line)) return false;
  const below = lines.slice(at + 1, at + 1 + HEADER_BLOCK_LINES);
  return below.filter((other) => BLOCK_OTHER.test(other.slice(0, MAX_INTRO_CHARS))).length >= 2;
}

function isQuoted(line: string): boolean {
  return line.startsWith(">");
}

function isBlank(lines: readonly string[]): boolean {
  return lines.every((line) => line.trim() === "");
}

/** What stands below a quoted block at the top; null where nothing is quoted there or nothing stands below. */
function underQuote(lines: readonly string[]): string | null {
  let at = lines.findIndex((line) => line.trim() !== "");
  if (at < 0 || !isQuoted(lines[at] ?? "")) return null;
  while (at < lines.length && (isQuoted(lines[at] ?? "") || (lines[at] ?? "").trim() === "")) at++;
  const below = withoutSignature(lines.slice(at));
  return isBlank(below) ? null : below.join("\n").trim();
}

function trimQuotedEnd(lines: readonly string[]): readonly string[] {
  let end = lines.length;
  while (end > 0 && (isQuoted(lines[end - 1] ?? "") || (lines[end - 1] ?? "").trim() === "")) end--;
  return lines.slice(0, end);
}

function withoutSignature(lines: readonly string[]): readonly string[] {
  const at = lines.findIndex(
    (line, index) =>
      index > 0 &&
      SIGNATURE_START.test(line) &&
      line.length <= MAX_INTRO_CHARS &&
      SIGNATURES.some((pattern) => pattern.test(line.trimEnd())),
  );
  return at < 0 ? lines : lines.slice(0, at);
}
