import { isAsciiText } from "../../core/ascii.ts";
import { encodeWord } from "nodemailer/lib/mime-funcs";
import MimeNode from "nodemailer/lib/mime-node";
import { type Mailbox, splitAddress } from "../../core/addresses.ts";
import { firstChars } from "../../core/first-chars.ts";

/** RFC 5322 §2.1.1: a line should have no more than 78 characters without its CRLF. */
const FOLD_CHARS = 76;
/** RFC 5322 §2.1.1: a line must have no more than 998 octets without its CRLF. */
export const MAX_LINE_OCTETS = 998;
/** A word longer than this many characters can only stay within a line when it is sent as encoded words. */
const MAX_WORD_CHARS = 900;
/** Units of a display name that are written: the API takes fewer, but the name in a mail that is answered may have more. */
const MAX_NAME_UNITS = 500;
/** Characters of one encoded word; RFC 2047 §2 allows 75, the rest is for what stands before it in the line. */
const ENCODED_WORD_CHARS = 52;

/** RFC 5322 §3.6.8: printable ASCII but the colon; 76 leaves the value room in the first line. */
const FIELD_NAME = /^[\x21-\x39\x3b-\x7e]{1,76}$/;
const PRINTABLE = /^[\x20-\x7e]*$/;

/**
 * One line of text as a header may carry it: line breaks and other controls become a space (header injection),
 * lone surrogates U+FFFD, so that a value never changes which fields follow.
 */
export function headerText(value: string): string {
  return value
    .toWellFormed()
    .replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]+/g, " ")
    .trim();
}

/** A whole field with its CRLF, folded; a value may be empty. Throws for a name that is no field name. */
export function headerField(name: string, value: string): string {
  if (!FIELD_NAME.test(name)) throw new Error(`"${headerText(name)}" is not a header field name`);
  return value === "" ? `${name}:\r\n` : `${fold(`${name}: ${value}`)}\r\n`;
}

/** A value that nodemailer is to write as it stands, folded for the field of that name. */
export function fieldValue(name: string, value: string): { prepared: true; value: string } {
  return { prepared: true, value: fold(`${name}: ${value}`).slice(name.length + 2) };
}

/**
 * Folds before spaces only, so that unfolding (RFC 5322 §2.2.3) gives the same text back. The first word stays beside the
 * name where the line can hold it: some readers take a first line without any for an empty field.
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

/** RFC 2047 encoded words of a text, as Q or B, whichever is shorter. */
function encodedWords(text: string): string {
  const beyondAscii = text.length - text.replace(/[^\x20-\x7e]/g, "").length;
  return encodeWord(text, beyondAscii * 3 > text.length ? "B" : "Q", ENCODED_WORD_CHARS);
}

/** Whether a word is too long for a line, the spaces before it counted: a line is folded before those, not within. */
function hasLongWord(text: string): boolean {
  return text.length > MAX_WORD_CHARS && wordsOf(text).some((word) => word.length > MAX_WORD_CHARS);
}

function wordsOf(text: string): string[] {
  return text.match(/ *[^ ]+/g) ?? [];
}

/** Text that reads back as given: `=?` would be taken for an encoded word, so it is encoded itself. */
export function unstructured(value: string): string {
  const text = headerText(value);
  return isPlain(text) && !text.includes("=?") ? text : encodedWords(text);
}

/** A word with the spaces before it; a name in quotes before an address is one (RFC 5322 §3.4). */
const CUSTOM_WORD = /( *)(?:"([^"\\]*)"(?= *<[^<>\s@]+@[^<>\s@]+>)|([^ ]+))/g;

/**
 * A caller's own header value: ASCII goes out as given, for it may be structured or hold encoded words already. Of another
 * value the words beyond ASCII are encoded alone (RFC 2047 §5), so that an address beside them stays one.
 */
export function customValue(value: string): string {
  const text = headerText(value);
  if (isPlain(text)) return text;
  // Encoded words of the caller's own would lose the spaces between them and ours.
  return text.includes("=?") ? encodedWords(text) : encodedInPart(text);
}

function encodedInPart(text: string): string {
  let out = "";
  // Words to be encoded together, for the spaces between encoded words count for nothing (RFC 2047 §6.2).
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
    // One space stands before encoded words; further ones are encoded, for a line is folded before them, not within.
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

/** Octets of a message id that a line has room for behind the space of a fold. */
const MAX_MESSAGE_ID_OCTETS = MAX_LINE_OCTETS - 1;

/**
 * Message ids (RFC 5322 §3.6.4), one or several. One beyond ASCII can only be in a mail with SMTPUTF8 (RFC 6532 §3.2), and
 * is left out of others whole: without the letters that are too many it would name another mail.
 */
export function messageIds(value: string, smtpUtf8: boolean): string {
  const words = headerText(value).split(/ +/);
  return words
    .filter((word) => word !== "" && Buffer.byteLength(word) <= MAX_MESSAGE_ID_OCTETS)
    .filter((word) => smtpUtf8 || PRINTABLE.test(word))
    .join(" ");
}

/** An address as it goes on the wire, domain in A-labels. Throws where it is none. */
function wireAddress(email: string): string {
  const split = splitAddress(email);
  if (split === null) throw new Error("an address that no mail can be sent to cannot be put into a header");
  return `${split.local}@${split.domain}`;
}

/** An address and a display name that stand as they are: a dot-atom in ASCII, and words of letters and digits. */
const PLAIN_ADDRESS = /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*@[a-z0-9.-]+$/i;
const PLAIN_NAME = /^[\w ]*$/;

/** A mailbox (RFC 5322 §3.4). An address beyond ASCII stands as UTF-8 (RFC 6532 §3.2). Throws where it is none. */
export function mailboxText({ email, name }: Mailbox): string {
  // A run of spaces could be folded into a line of spaces alone, which ends the header for some readers.
  const phrase = headerText(name ?? "").replace(/ +/g, " ");
  const mailbox = { name: firstChars(phrase, MAX_NAME_UNITS), address: wireAddress(email) };
  // Many readers take `=?` for an encoded word within quotes, too.
  if (mailbox.name.includes("=?")) return `${encodedWords(mailbox.name)} <${mailbox.address}>`;
  if (!PLAIN_ADDRESS.test(mailbox.address) || !PLAIN_NAME.test(mailbox.name))
    return MimeNode.encodeHeaderValue("From", [mailbox]);
  return mailbox.name === "" ? mailbox.address : `${mailbox.name} <${mailbox.address}>`;
}

/** Whether the address needs SMTPUTF8 (RFC 6531): its local part is beyond ASCII; a domain never is on the wire. */
export function needsSmtpUtf8(email: string): boolean {
  return !isAsciiText(email.slice(0, email.lastIndexOf("@")));
}
