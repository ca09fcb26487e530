import {
  ASKED_AFTER,
  ASKED_BEFORE,
  BOOKED,
  ENTERS,
  LABELLED,
  NO_NOUN,
  OTHER_CODES,
  PRESENTED,
  PURPOSE,
} from "./code-signs.ts";

/** Maximum number of codes that are shown. */
export const MAX_CODES = 5;
/** Maximum characters of text that are searched. A code is near the beginning. */
export const MAX_SEARCHED_CHARS = 32 * 1024;
/** Maximum characters of a line that are searched. */
const MAX_LINE_CHARS = 1000;
/** Lines before a code in which a word for it counts. */
const LINES_BEFORE = 3;

/** Words that announce a code, in the languages of mail. */
const WORDS = new RegExp(
  [
    "\\bcode\\b|\\bcodes\\b|passcode|\\botp\\b|\\bpin\\b|one[- ]time|verification(?!s\\b)|(?:security|magic|secret) number|\\btoken\\b|2fa|two-factor",
    "sicherheitsnummer|geheimzahl|kode\\b|code\\b|kennwort|einmal|best(?:ä|ae)tigungs|\\bm?tan\\b|passwort",
    "c[oó]digo|codice|\\bcod\\b|contraseñ|\\bkod|k[oó]d(?:\\b|a|u|em|en)|koden|koodi|kodas|vahvistus",
    "пароль|код|одноразов|κωδικ|קוד|رمز|كود|कोड|ओटीपी|รหัส|mã xác|\\bmã\\b|doğrulama|şifre",
    "验证码|校验码|驗證碼|动态码|認証|確認コード|コード|ワンタイム|인증|코드",
  ].join("|"),
  "i",
);
/** Words for other numbers, which are then no codes. */
const OTHERS = new RegExp(
  [
    "order|invoice|receipt|tracking|customer (?:no|number|id)|account (?:no|number)|reference|\\bref\\b|booking|ticket|case #|post ?code|postal|\\bzip\\b|phone|\\btel\\b|fax|dial[- ]?in|webinar|\\broom\\b|vat|iban",
    "bestell|rechnung|kunden|sendung|plz|telefon|commande|facture|pedido|factura|fattura|ordine|encomenda|bestelling|ordre|faktura|tilaus|zamówien|sipariş|заказ|订单|注文|주문",
    "checkout|% off|\\bkasse\\b|\\bcaisse\\b|commit|release|pull request|copyright|©|gmbh|\\binc\\b|street|straße|avenue|suite|p\\.?o\\.? box|discount|coupon|promo|voucher|gutschein|rabatt|remise|descuento",
  ].join("|"),
  "i",
);

/** A code of digits, maybe in groups; of single digits; or of letters and digits, maybe in groups. */
const CODE =
  /(?<![\w.,/@#$€£¥+%-]|\d:)(?:\d{3}[ \u00a0-]\d{3}|\d{2}[ -]\d{2}[ -]\d{2}|\d{4}[ -]\d{4}|\d(?: \d){3,7}|\d{4,8}|[A-Z]-\d{5,8}|[A-Z0-9]{3,5}(?:-[A-Z0-9]{3,5}){1,2}|(?=[A-Z0-9-]{0,11}[A-Z])[A-Z0-9]{3,5}-[A-Z0-9]{2,5}-[A-Z0-9]{2,5}|[A-Z0-9]{5,10})(?![\w@%€£¥$/]|[.,:-]\w|-)/g;

/** Maximum number of candidates in a line, and in a message. */
const MAX_PER_LINE = 20;
const MAX_CANDIDATES = 500;
/** Score from which a candidate is a code. */
const ENOUGH = 4;
/** Points by which a code in the same line rules another candidate out. */
const CLEARER = 5;

/** A line of a message; the first one is the subject. */
interface Line {
  text: string;
  /** True if it has a word for a code, and for another number. */
  names: boolean;
  namesOther: boolean;
  /** True if it names a purpose of entering a code, and has a verb for entering. */
  hasPurpose: boolean;
  enters: boolean;
}

/**
 * Returns the codes that a message asks its reader to enter, best first: for verification, sign-in or a password that works
 * once. A message has none if it has neither a word for such a code nor asks to enter something in order to sign in.
 */
export function codesIn(subject: string, text: string): string[] {
  const lines = [subject, ...text.slice(0, MAX_SEARCHED_CHARS).split("\n")]
    .filter((line, at) => at === 0 || line.trim() !== "")
    .map(lineOf);
  if (!lines.some(({ names, hasPurpose }) => names || hasPurpose)) return [];
  const books = lines.some(({ text, namesOther }) => namesOther || BOOKED.test(text));
  const best = new Map<string, number>();
  let looked = 0;
  for (const at of lines.keys()) {
    const candidates = looked >= MAX_CANDIDATES ? [] : candidatesIn(lines, at, books);
    looked += candidates.length;
    for (const [code, score] of candidates) {
      const known = best.get(code);
      // A code that is named twice is more likely one.
      best.set(code, known === undefined ? score : Math.max(score, known) + 1);
    }
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
  const own = text.replace(OTHER_CODES, " ");
  return {
    text,
    names: WORDS.test(own),
    namesOther: OTHERS.test(text),
    hasPurpose: PURPOSE.test(text),
    enters: ENTERS.test(text),
  };
}

/** @param books whether the message books or sells something */
function candidatesIn(lines: readonly Line[], at: number, books: boolean): [code: string, score: number][] {
  const line = lines[at];
  if (line === undefined) return [];
  const { text } = line;
  const found = [...text.matchAll(CODE)].slice(0, MAX_PER_LINE).flatMap((match): [string, number][] => {
    const [written] = match;
    const alone = text.trim().replace(/[.:"“”'*_\s]+/g, "") === written.replace(/\s+/g, "");
    if (!isCodeLike(written)) return [];
    const end = match.index + written.length;
    const [before, after] = [text.slice(0, match.index), text.slice(end)];
    const place = { written, before, after, alone, labelled: !books && isLabelled(before, after) };
    const score = scoreOf(lines, at, place);
    // The next line of a list of codes is one, too.
    if (alone && score >= ENOUGH) line.names = true;
    return [[plainCode(written), score]];
  });
  // "Enter 938104 to reset the PIN of card 4021": next to a clear code, another number is not a code.
  const clearest = Math.max(...found.map(([, score]) => score));
  return found.filter(([, score]) => clearest - score < CLEARER);
}

interface Place {
  written: string;
  /** The line before and after it. */
  before: string;
  after: string;
  /** True if it is alone on its line. */
  alone: boolean;
  /** True if only its purpose announces it. */
  labelled: boolean;
}

/** The sign or word right before a code: a colon, or "is" in some languages. */
const ANNOUNCED = /[:：]\s*$|(?:^|\s)(?:is|ist|est|es|é|è|är|er|on|to)\s*["“]?$|(?:为|是|は)\s*$/i;

function scoreOf(lines: readonly Line[], at: number, place: Place): number {
  const { written, before, alone, labelled } = place;
  const line = lines[at];
  if (line === undefined) return 0;
  const asked = isAsked(lines, at, place);
  const named = line.names && isNamedNear(place);
  const around = [...lines.slice(Math.max(0, at - LINES_BEFORE), at), ...lines.slice(at + 1, at + 2)];
  const announced = labelled || (line.names && ANNOUNCED.test(before));
  const letters = !/\d/.test(written);
  return [
    named || labelled ? 4 : 0,
    announced ? 2 : 0,
    alone ? (around.some(({ names }) => names) ? 5 : 2) : 0,
    at === 0 && line.names ? 1 : 0,
    /^\d{6}$|^\d{3}[ -]\d{3}$/.test(written) ? 1 : 0,
    asked ? 5 : 0,
    line.namesOther && !announced && !asked ? -6 : 0,
    isYear(written) && !alone && !announced ? -6 : 0,
    // Words in capitals look like codes of letters.
    letters && !alone && !announced && !(asked && isEvenGroups(written)) ? -6 : 0,
    letters && !announced && !written.includes("-") ? -4 : 0,
  ].reduce((sum, points) => sum + points, 0);
}

/** Words in capitals rarely have parts of one length. */
function isEvenGroups(written: string): boolean {
  const [first = "", second = "", ...more] = written.split("-");
  return first.length === second.length && more.length === 0;
}

/** Characters before and after a candidate that may belong to its sentence. */
const SENTENCE_CHARS = 200;

/** Returns the parts of its sentence before and after a candidate, and the sentence before that. */
function sentenceOf({ before, after }: Place): { said: string; follows: string; previous: string } {
  const sentences = before.slice(-SENTENCE_CHARS).split(/[.!?] |。/);
  const [follows = ""] = after.slice(0, SENTENCE_CHARS).split(/[.!?](?:\s|$)|。/);
  return { said: sentences.at(-1) ?? "", follows, previous: sentences.at(-2) ?? "" };
}

/** Returns whether the word for a code is in the sentence of a candidate, or announces it in the one before. */
function isNamedNear(place: Place): boolean {
  const { said, follows, previous } = sentenceOf(place);
  return WORDS.test(`${said} ${follows}`) || (WORDS.test(previous) && !/\d{4}/.test(previous));
}

function isLabelled(before: string, after: string): boolean {
  return (
    /^["”»]?\s*(?:[.!,]|$|\((?:valid|expires|g[uü]ltig|valable|v[aá]lid))/i.test(after.slice(0, 20)) &&
    LABELLED.test(before.slice(-SENTENCE_CHARS))
  );
}

/** Words after a code that saves money: "use SAVE2026 at checkout to confirm your discount". */
const COUPON =
  /checkout|discount|coupon|promo|voucher|gutschein|rabatt|\bkasse\b|\bcaisse\b|remise|descuento|sconto|desconto|korting|zniżk/i;

/** Words next to letters and digits that name a booking: "check in with QX7L2P to confirm your seat". */
const JOURNEY = /\b(?:check[ -]?in|flight|seat|boarding|reservation|booking|hotel)\b/i;

/** Returns whether the message asks its reader to enter the candidate, for example to sign in or to confirm something. */
function isAsked(lines: readonly Line[], at: number, place: Place): boolean {
  const { written, before, after, alone } = place;
  const line = lines[at];
  if (line === undefined || /\d ?$/.test(before) || /^ ?\d/.test(after)) return false;
  if (alone) return at > 0 && isAskedAbove(lines, at, written);
  const { said, follows } = sentenceOf(place);
  const presented = /^\W*$|[:：]\s*$/.test(said) && !line.namesOther && PRESENTED.test(follows);
  if (presented) return PURPOSE.test(follows);
  if (COUPON.test(follows) || (/[A-Z]/.test(written) && JOURNEY.test(`${said} ${follows}`))) return false;
  const entered = ASKED_AFTER.test(follows) || (ASKED_BEFORE.test(said) && NO_NOUN.test(follows));
  return entered && (PURPOSE.test(said) || PURPOSE.test(follows) || lines[0]?.hasPurpose === true);
}

/** Returns whether a line above a candidate, which has its own line, asks to enter what follows. */
function isAskedAbove(lines: readonly Line[], at: number, written: string): boolean {
  const above = lines.slice(Math.max(0, at - LINES_BEFORE), at);
  if (above.some(({ namesOther }) => namesOther)) return false;
  const introduces = ({ text, enters, hasPurpose }: Line): boolean =>
    (enters && (hasPurpose || lines[0]?.hasPurpose === true)) || (hasPurpose && /[:：]\s*$/.test(text));
  return above.some(introduces) || (lines[0]?.hasPurpose === true && /^\d{3}[ -]?\d{3}$/.test(written));
}

/** Maximum digits of a code. A telephone number has more. */
const MAX_DIGITS = 8;

/** Returns whether the text has the form of a code rather than of a word or a short number. */
function isCodeLike(written: string): boolean {
  if (/^[\d\s\u00a0-]+$/.test(written)) return written.replace(/\D/g, "").length <= MAX_DIGITS;
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
