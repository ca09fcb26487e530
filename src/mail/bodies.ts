/** RFC 2045 §6.7 (5) and §6.8: encoded lines have at most 76 characters. */
const ENCODED_LINE_CHARS = 76;
/** Bytes that make up one base64 line. */
const BASE64_LINE_BYTES = (ENCODED_LINE_CHARS / 4) * 3;
/** RFC 5322 §2.1.1: lines up to 78 characters pass unencoded, longer ones some relays would wrap. */
const PLAIN_LINE_CHARS = 78;

const CR = 0x0d;
const LF = 0x0a;
const EQUALS = 0x3d;
const HEX = Buffer.from("0123456789ABCDEF");

export type TransferEncoding = "7bit" | "quoted-printable" | "base64";

/** The bytes of a part as they go on the wire, and how they are encoded. */
export interface EncodedBody {
  encoding: TransferEncoding;
  bytes: Buffer;
}

/** Text with CRLF line ends only: CRLF, a bare CR and a bare LF each end one line. */
export function normalizeLineEnds(text: string): string {
  return text.toWellFormed().replace(/\r\n|\r|\n/g, "\r\n");
}

/** Whether a text passes as 7bit: tab, printable ASCII and short lines, none that an mbox would alter ("From "). */
function isPlain(text: string): boolean {
  if (!/^[\t\r\n\x20-\x7e]*$/.test(text) || /^From /m.test(text)) return false;
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf("\r\n", at);
    if ((end < 0 ? text.length : end) - at > PLAIN_LINE_CHARS) return false;
    if (end < 0) return true;
    at = end + 2;
  }
  return true;
}

/**
 * Encodes a text part: 7bit where it is plain, else the shorter of quoted-printable and base64.
 * @param avoid a boundary that must not occur in the result; a text that has it is not sent as it is
 */
export function encodeText(text: string, avoid: string): EncodedBody {
  const crlf = normalizeLineEnds(text);
  if (isPlain(crlf) && !crlf.includes(avoid)) return { encoding: "7bit", bytes: Buffer.from(crlf, "latin1") };
  const bytes = Buffer.from(crlf, "utf8");
  const escaped = countEscaped(bytes);
  // Base64 grows by a third, quoted-printable by two octets for each octet escaped.
  if (escaped * 6 > bytes.length) return { encoding: "base64", bytes: base64Lines(bytes) };
  return { encoding: "quoted-printable", bytes: quotedPrintable(bytes) };
}

/** Octets that quoted-printable would escape, but for white space and rare controls. An iterator here made composing three times slower. */
function countEscaped(bytes: Buffer): number {
  let escaped = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0;
    if (byte > 0x7e || byte === EQUALS) escaped++;
  }
  return escaped;
}

/** Base64 in lines of 76 characters with CRLF between them (RFC 2045 §6.8). */
export function base64Lines(bytes: Uint8Array): Buffer {
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const lines = Math.ceil(source.length / BASE64_LINE_BYTES);
  const out = Buffer.allocUnsafe(Math.ceil(source.length / 3) * 4 + lines * 2);
  let at = 0;
  for (let from = 0; from < source.length; from += BASE64_LINE_BYTES) {
    if (from > 0) {
      out[at++] = CR;
      out[at++] = LF;
    }
    at += out.write(source.toString("base64", from, from + BASE64_LINE_BYTES), at, "latin1");
  }
  return out.subarray(0, at);
}

/** Whether the octet must be written as `=XX` (RFC 2045 §6.7): no printable ASCII, or white space that ends a line. */
function mustEscape(bytes: Buffer, i: number, byte: number): boolean {
  if (byte === 0x20 || byte === 0x09) return i + 1 === bytes.length || bytes[i + 1] === CR;
  return byte < 0x21 || byte > 0x7e || byte === EQUALS;
}

/** A "From " that begins a line is escaped: an mbox on the way would put ">" before it and break the signature. */
function beginsFrom(bytes: Buffer, i: number): boolean {
  return bytes[i] === 0x46 && bytes.toString("latin1", i, i + 5) === "From ";
}

/** Octets of the UTF-8 character that begins with this octet; 1 for what begins none. */
function characterOctets(byte: number): number {
  if (byte < 0xc0) return 1;
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/** Quoted-printable (RFC 2045 §6.7) of UTF-8 text whose line ends are CRLF; no character is split over two lines. */
export function quotedPrintable(bytes: Buffer): Buffer {
  // An octet takes three, and a soft line break of three comes at most every 64.
  const out = Buffer.allocUnsafe(bytes.length * 4 + 16);
  let at = 0;
  let column = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0;
    if (byte === CR && bytes[i + 1] === LF) {
      out[at++] = CR;
      out[at++] = LF;
      i++;
      column = 0;
      continue;
    }
    const escaped = mustEscape(bytes, i, byte) || (column === 0 && beginsFrom(bytes, i));
    const width = escaped ? 3 * characterOctets(byte) : 1;
    // One place stays free for the "=" of a soft line break.
    if (column + width > ENCODED_LINE_CHARS - 1) {
      out[at++] = EQUALS;
      out[at++] = CR;
      out[at++] = LF;
      column = 0;
    }
    if (escaped) {
      out[at++] = EQUALS;
      out[at++] = HEX[byte >> 4] ?? 0;
      out[at++] = HEX[byte & 15] ?? 0;
      column += 3;
    } else {
      out[at++] = byte;
      column++;
    }
  }
  return out.subarray(0, at);
}
