import { isAscii, isUtf8 } from "node:buffer";
import { wrap as wrapBase64 } from "nodemailer/lib/base64";
import { MAX_LINE_OCTETS } from "../composing/header-fields.ts";
import { quotedPrintable } from "../composing/quoted-printable.ts";
import { octetsOf } from "../reading/part-octets.ts";
import { findHeaderEnd, type RawField, rawFields } from "../reading/raw-headers.ts";
import { MAX_CHANGED_OCTETS, partBody } from "./change-texts.ts";
import { headerOctets } from "./header.ts";
import { type LeafPart, leafParts } from "./text-parts.ts";

const LF = 0x0a;

/**
 * Returns the message with other transfer encodings for bodies that a server on the way might change: lines over 998 octets, which some
 * split, and octets beyond ASCII, which a server without 8BITMIME (RFC 6152) does not take. Either would break the signature. All other
 * octets stay as they are. Line ends must be CRLF.
 */
export function fitForWire(bytes: Buffer): Buffer {
  const { body } = findHeaderEnd(bytes);
  if (fits(bytes.subarray(body))) return bytes;
  const pieces: Buffer[] = [];
  let kept = 0;
  for (const part of leafParts(bytes)) {
    if (fits(bytes.subarray(part.from, part.to))) continue;
    pieces.push(bytes.subarray(kept, part.header), encoded(bytes, part));
    kept = part.to;
  }
  return Buffer.concat([...pieces, bytes.subarray(kept)]);
}

function fits(octets: Buffer): boolean {
  return isAscii(octets) && !hasLongLine(octets);
}

function hasLongLine(octets: Buffer): boolean {
  for (let start = 0; octets.length - start > MAX_LINE_OCTETS; ) {
    const end = octets.indexOf(LF, start);
    if ((end < 0 ? octets.length : end - 1) - start > MAX_LINE_OCTETS) return true;
    start = end + 1;
  }
  return false;
}

/** Returns a part in quoted-printable if it is a text part, else in base64. */
function encoded(bytes: Buffer, part: LeafPart): Buffer {
  const isText = part.media.startsWith("text/") && part.to - part.from <= MAX_CHANGED_OCTETS;
  const octets = contentOf(bytes, part);
  const name = isText ? "quoted-printable" : "base64";
  const text = isText ? quotedPrintable(octets) : wrapBase64(octets.toString("base64"));
  const header = encodedHeader(bytes.subarray(part.header, part.from), name, part.header === 0, octets);
  return Buffer.concat([header, partBody(text, part.to === bytes.length)]);
}

function contentOf(bytes: Buffer, part: LeafPart): Buffer {
  if (part.encoding === "identity") return bytes.subarray(part.from, part.to);
  return Buffer.concat([...octetsOf(bytes, part, part.encoding, "crlf")].map((piece) => Buffer.from(piece)));
}

/** Returns the header of a part that was encoded. A message without MIME fields gets them, with the charset of its octets. */
function encodedHeader(block: Buffer, encoding: string, isMessage: boolean, content: Buffer): Buffer {
  const fields = rawFields(block).filter(({ name }) => name !== "content-transfer-encoding");
  const has = (name: string): boolean => fields.some((field) => field.name === name);
  const added = [`Content-Transfer-Encoding: ${encoding}`];
  if (isMessage && !has("content-type"))
    added.unshift(`Content-Type: text/plain; charset=${charsetOf(content)}`);
  if (isMessage && !has("mime-version")) added.unshift("MIME-Version: 1.0");
  return headerOctets([...fields, ...added.map(fieldOf)]);
}

function charsetOf(content: Buffer): string {
  if (isAscii(content)) return "us-ascii";
  // RFC 1428 §3: a charset that is not named.
  return isUtf8(content) ? "utf-8" : "unknown-8bit";
}

function fieldOf(line: string): RawField {
  return { name: line.slice(0, line.indexOf(":")).toLowerCase(), line };
}
