import { isAsciiText, firstChars } from "../../core/text.ts";
import { encodeWord } from "nodemailer/lib/mime-funcs";
import MimeNode from "nodemailer/lib/mime-node";
import { type Mailbox, splitAddress } from "../../core/addresses.ts";

/** RFC 5322 §2.1.1: a line should have no more than 78 characters without its CRLF. */
const FOLD_CHARS = 76;
/** RFC 5322 §2.1.1: a line must have no more than 998 octets without its CRLF. */
export const MAX_LINE_OCTETS = 998;
/** A word longer than this many characters fits a line only as encoded words. */
const MAX_WORD_CHARS = 900;
/**
 * Units of a display name that are written. The API takes fewer, but the name in a message that we reply to may be
 * longer.
 */
const MAX_NAME_UNITS = 500;
/** Characters of one encoded word. RFC 2047 §2 allows 75; the rest is for the text before it in the line. */
const ENCODED_WORD_CHARS = 52;

/** A field name. RFC 5322 §3.6.8: printable ASCII except the colon. 76 leaves room for the value in the first line. */
const FIELD_NAME = /^[\x21-\x39\x3b-\x7e]{1,76}$/;
const PRINTABLE = /^[\x20-\x7e]*$/;

/**
 * Returns text that a header can carry on one line. Line breaks and other controls become a space, which prevents
 * header injection. Lone surrogates become U+FFFD.
 */
export function headerText(value: string): string {
  return value
    .toWellFormed()
    .replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]+/g, " ")
    .trim();
}

/** Returns a whole field with its CRLF, folded. The value may be empty. Throws for an invalid field name. */
export function headerField(name: string, value: string): string {
  if (!FIELD_NAME.test(name)) throw new Error(`"${headerText(name)}" is not a header field name`);
  return value === "" ? `${name}:\r\n` : `${fold(`${name}: ${value}`)}\r\n`;
}

/** Returns a value that nodemailer writes unchanged, folded for the field of that name. */
export function fieldValue(name: string, value: string): { prepared: true; value: string } {
  return { prepared: true, value: fold(`${name}: ${value}`).slice(name.length + 2) };
}

/**
 * Folds before spaces only, so that unfolding (RFC 5322 §2.2.3) gives the original text. The first word stays in the
 * first line if there is room: some readers take an empty first line for an empty field.
 */
function fold(line: string): string {
  if (line.length <= FOLD_CHARS) return line;
  const [name = "", first = "", ...rest] = wordsOf(line);
  const beside = Buffer.byteLength(name + first) <= MAX_LINE_OCTETS;
  let out = beside ? name + first : `${name}\r\n${first}`;
  let column = beside ? out.length : first.length;
  for (const word of rest) {
    if (column + word.length > FOLD_CHARS) {
      out += "\r\n";
      column = 0;
    }
    out += word;
    column += word.length;
  }
  return out;
}

/** Returns the RFC 2047 encoded words of a string, as Q or B, whichever is shorter. */
function encodedWords(text: string): string {
  const beyondAscii = text.length - text.replace(/[^\x20-\x7e]/g, "").length;
  return encodeWord(text, beyondAscii * 3 > text.length ? "B" : "Q", ENCODED_WORD_CHARS);
}

/**
 * Returns whether a word with the spaces before it is too long for a line. A line is folded before the spaces, not
 * within them.
 */
function hasLongWord(text: string): boolean {
  return text.length > MAX_WORD_CHARS && wordsOf(text).some((word) => word.length > MAX_WORD_CHARS);
}

function wordsOf(text: string): string[] {
  return text.match(/ *[^ ]+/g) ?? [];
}

/**
 * Returns text that readers decode to the original. `=?` would be taken for an encoded word, so it is encoded itself.
 */
export function unstructured(value: string): string {
  const text = headerText(value);
  return isPlain(text) && !text.includes("=?") ? text : encodedWords(text);
}

/** A word with the spaces before it. A quoted name before an address is one word (RFC 5322 §3.4). */
const CUSTOM_WORD = /( *)(?:"([^"\\]*)"(?= *<[^<>\s@]+@[^<>\s@]+>)|([^ ]+))/g;

/**
 * Encodes a caller's own header value. ASCII is sent as given, because it may be structured or hold encoded words
 * already. Of any other value, only the words beyond ASCII are encoded (RFC 2047 §5), so an address among them stays
 * intact.
 */
export function customValue(value: string): string {
  const text = headerText(value);
  if (isPlain(text)) return text;
  // The caller's own encoded words would lose the spaces between them and ours.
  return text.includes("=?") ? encodedWords(text) : encodedInPart(text);
}

function encodedInPart(text: string): string {
  let out = "";
  // These words are encoded together, because spaces between encoded words do not count (RFC 2047 §6.2).
  let run = "";
  const encodeRun = (): void => {
    if (run !== "") out += encodedWords(run);
    run = "";
  };
  for (const [token, spaces = "", name, word] of text.matchAll(CUSTOM_WORD)) {
    if (isPlain(token)) {
      encodeRun();
      out += token;
      continue;
    }
    // One space precedes encoded words. Further spaces are encoded, because a line is folded before them, not within.
    const before = run === "" ? spaces.slice(0, 1) : "";
    out += before;
    run += spaces.slice(before.length) + (name ?? word);
  }
  encodeRun();
  return out;
}

function isPlain(text: string): boolean {
  return PRINTABLE.test(text) && !hasLongWord(text);
}

/** Maximum octets of a message id that fit a line after the space of a fold. */
const MAX_MESSAGE_ID_OCTETS = MAX_LINE_OCTETS - 1;

/**
 * Returns message ids (RFC 5322 §3.6.4), one or several. An id beyond ASCII needs SMTPUTF8 (RFC 6532 §3.2) and is
 * otherwise left out whole: without some letters it would name another message.
 */
export function messageIds(value: string, smtpUtf8: boolean): string {
  const words = headerText(value).split(/ +/);
  return words
    .filter((word) => word !== "" && Buffer.byteLength(word) <= MAX_MESSAGE_ID_OCTETS)
    .filter((word) => smtpUtf8 || PRINTABLE.test(word))
    .join(" ");
}

/** Returns an address in its form on the wire, with the domain in A-labels. Throws if it is invalid. */
function wireAddress(email: string): string {
  const split = splitAddress(email);
  if (split === null) throw new Error("an address that no mail can be sent to cannot be put into a header");
  return `${split.local}@${split.domain}`;
}

/** An address and a display name that need no quoting: a dot-atom in ASCII, and words of letters and digits. */
const PLAIN_ADDRESS = /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*@[a-z0-9.-]+$/i;
const PLAIN_NAME = /^[\w ]*$/;

/**
 * Returns a mailbox (RFC 5322 §3.4). An address beyond ASCII is written in UTF-8 (RFC 6532 §3.2). Throws if it is
 * invalid.
 */
export function mailboxText({ email, name }: Mailbox): string {
  // A run of spaces could be folded into a line of only spaces, which ends the header for some readers.
  const phrase = headerText(name ?? "").replace(/ +/g, " ");
  const mailbox = { name: firstChars(phrase, MAX_NAME_UNITS), address: wireAddress(email) };
  // Many readers also take `=?` for an encoded word within quotes.
  if (mailbox.name.includes("=?")) return `${encodedWords(mailbox.name)} <${mailbox.address}>`;
  if (!PLAIN_ADDRESS.test(mailbox.address) || !PLAIN_NAME.test(mailbox.name))
    return MimeNode.encodeHeaderValue("From", [mailbox]);
  return mailbox.name === "" ? mailbox.address : `${mailbox.name} <${mailbox.address}>`;
}

/**
 * Returns whether an address needs SMTPUTF8 (RFC 6531). Only its local part can: a domain on the wire is always
 * ASCII.
 */
export function needsSmtpUtf8(email: string): boolean {
  return !isAsciiText(email.slice(0, email.lastIndexOf("@")));
}
