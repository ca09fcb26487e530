/** Codes that are shown. */
export const MAX_CODES = 5;
/** Characters of text that are searched. A code is near the beginning. */
export const MAX_SEARCHED_CHARS = 32 * 1024;
/** Characters of a line that are searched. */
const MAX_LINE_CHARS = 1000;
/** Lines before a code in which a word for it counts. */
const LINES_BEFORE = 3;

/** Words that announce a code, in the languages of mail. */
const WORDS = new RegExp(
  [
    "\\bcode\\b|\\bcodes\\b|passcode|\\botp\\b|\\bpin\\b|one[- ]time|verif|security number|\\btoken\\b|2fa|two-factor",
    "kode\\b|code\\b|kennwort|einmal|best(?:ä|ae)tigungs|\\btan\\b|passwort",
    "c[oó]digo|codice|\\bcod\\b|contraseñ|\\bkod|k[oó]d(?:\\b|a|u|em|en)|koden|koodi|kodas|vahvistus",
    "пароль|код|одноразов|κωδικ|קוד|رمز|كود|कोड|ओटीपी|รหัส|mã xác|\\bmã\\b|doğrulama|şifre",
    "验证码|校验码|驗證碼|动态码|認証|確認コード|コード|ワンタイム|인증|코드",
  ].join("|"),
  "i",
);
/** Words for other numbers, which are then no codes. */
const OTHERS = new RegExp(
  [
    "order|invoice|receipt|tracking|customer (?:no|number|id)|account (?:no|number)|reference|\\bref\\b|booking|ticket|case #|postal|\\bzip\\b|phone|\\btel\\b|fax|vat|iban",
    "bestell|rechnung|kunden|sendung|plz|telefon|commande|facture|pedido|factura|fattura|ordine|encomenda|bestelling|ordre|faktura|tilaus|zamówien|sipariş|заказ|订单|注文|주문",
    "source code|code of conduct|[qb]a?r ?code|dress code|zip code|postal code|copyright|©|gmbh|\\binc\\b|street|straße|avenue|suite|p\\.?o\\.? box|discount|coupon|promo|voucher|gutschein|rabatt|remise|descuento",
  ].join("|"),
  "i",
);

/** A code of digits, maybe in groups; of single digits; or of letters and digits, maybe in groups. */
const CODE =
  /(?<![\w.,/@#$€£¥+%-]|\d:)(?:\d{3}[ \u00a0-]\d{3}|\d{2}[ -]\d{2}[ -]\d{2}|\d{4}[ -]\d{4}|\d(?: \d){3,7}|\d{4,8}|[A-Z]-\d{5,8}|[A-Z0-9]{3,5}(?:-[A-Z0-9]{3,5}){1,2}|[A-Z0-9]{5,10})(?![\w@%€£¥$/]|[.,:-]\w|-)/g;

/** Candidates of a line that are looked at. */
const MAX_PER_LINE = 20;
/** Score from which a candidate is a code. */
const ENOUGH = 4;

/** A line of a message; the first one is the subject. */
interface Line {
  text: string;
  /** True if it has a word for a code, and for another number. */
  names: boolean;
  namesOther: boolean;
}

/**
 * Returns the codes that a message asks its reader to enter, best first: for verification, sign-in or a password that works
 * once. A message without a word for such a code has none.
 */
export function codesIn(subject: string, text: string): string[] {
  const lines = [subject, ...text.slice(0, MAX_SEARCHED_CHARS).split("\n")]
    .filter((line, at) => at === 0 || line.trim() !== "")
    .map(lineOf);
  if (!lines.some(({ names }) => names)) return [];
  const best = new Map<string, number>();
  for (const at of lines.keys())
    for (const [code, score] of candidatesIn(lines, at)) {
      const known = best.get(code);
      // A code that is named twice is more likely one.
      best.set(code, known === undefined ? score : Math.max(score, known) + 1);
    }
  return [...best]
    .filter(([, score]) => score >= ENOUGH)
    .sort(([, a], [, b]) => b - a)
    .slice(0, MAX_CODES)
    .map(([code]) => code);
}

function lineOf(line: string): Line {
  // Numbers in addresses are no codes.
  const text = line.slice(0, MAX_LINE_CHARS).replace(/https?:\/\/\S+|\S+@\S+/g, " ");
  return { text, names: WORDS.test(text), namesOther: OTHERS.test(text) };
}

function candidatesIn(lines: readonly Line[], at: number): [code: string, score: number][] {
  const line = lines[at];
  if (line === undefined) return [];
  const { text } = line;
  return [...text.matchAll(CODE)].slice(0, MAX_PER_LINE).flatMap((match): [string, number][] => {
    const [written] = match;
    const alone = text.trim().replace(/[.:"“”'*_\s]+/g, "") === written.replace(/\s+/g, "");
    if (!isCodeLike(written)) return [];
    const score = scoreOf(lines, at, { written, before: text.slice(0, match.index), alone });
    // The next line of a list of codes is one, too.
    if (alone && score >= ENOUGH) line.names = true;
    return [[plainCode(written), score]];
  });
}

interface Place {
  written: string;
  /** The line before it. */
  before: string;
  /** True if it has a line of its own. */
  alone: boolean;
}

/** The sign or word right before a code: a colon, or "is" in some languages. */
const ANNOUNCED = /[:：]\s*$|(?:^|\s)(?:is|ist|est|es|é|è|är|er|on|to)\s*["“]?$|(?:为|是|は)\s*$/i;

function scoreOf(lines: readonly Line[], at: number, { written, before, alone }: Place): number {
  const line = lines[at];
  if (line === undefined) return 0;
  const around = [...lines.slice(Math.max(0, at - LINES_BEFORE), at), ...lines.slice(at + 1, at + 2)];
  const announced = line.names && ANNOUNCED.test(before);
  const letters = !/\d/.test(written);
  return [
    line.names ? 4 : 0,
    announced ? 2 : 0,
    alone ? (around.some(({ names }) => names) ? 5 : 2) : 0,
    at === 0 && line.names ? 1 : 0,
    /^\d{6}$|^\d{3}[ -]\d{3}$/.test(written) ? 1 : 0,
    line.namesOther && !announced ? -6 : 0,
    isYear(written) && !alone && !announced ? -6 : 0,
    // Words in capitals look like codes of letters.
    letters && !alone && !announced ? -6 : 0,
    letters && !announced && !written.includes("-") ? -4 : 0,
  ].reduce((sum, points) => sum + points, 0);
}

/** Returns whether the text has the form of a code rather than of a word or a short number. */
function isCodeLike(written: string): boolean {
  if (/^[\d\s-]+$/.test(written)) return true;
  const parts = written.split("-");
  return /\d/.test(written) || parts.length > 1 || written.length <= 8;
}

function isYear(written: string): boolean {
  return /^(?:19|20)\d\d$/.test(written);
}

/** Returns a code as it is typed: groups of digits have nothing between them. */
function plainCode(written: string): string {
  return /^[\d\s\u00a0-]+$/.test(written) ? written.replace(/\D/g, "") : written;
}
