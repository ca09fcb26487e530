import { isAscii, isUtf8 } from "node:buffer";
import { wrap as wrapBase64 } from "nodemailer/lib/base64";
import { quotedPrintable } from "../composing/quoted-printable.ts";
import { normalizeLineEnds } from "../composing/text-entry.ts";
import { octetsOf } from "../reading/part-octets.ts";
import { rawFields } from "../reading/raw-headers.ts";
import { headerOctets } from "./header.ts";
import { type TextPart, textParts } from "./text-parts.ts";

/** Maximum octets of a text part that is changed. A larger one is sent as it is. */
export const MAX_CHANGED_OCTETS = 2 * 1024 * 1024;

/**
 * Changes a text part. Equal output leaves the part untouched.
 * @param exact false if characters beyond ASCII represent octets of another charset
 */
export type ChangeText = (text: string, kind: TextPart["kind"], exact: boolean) => string;

/** Charsets in which octets below 128 are ASCII, or the second octet of a character that no markup is made of. */
const ASCII_BASED =
  /^(?:iso-8859-\d{1,2}|windows-125\d|cp125\d|latin-?\d|koi8-[ru]|macintosh|gb2312|gbk|gb18030|big5|euc-(?:jp|kr)|shift_jis|tis-620)$/;
const UTF8 = /^(?:|utf-?8|us-ascii|ascii)$/;

/**
 * Returns the message with changed text parts. A changed part gets the transfer encoding quoted-printable, or stays
 * in base64; all other octets stay as they are.
 */
export function changeTexts(bytes: Buffer, change: ChangeText): Buffer {
  const pieces: Buffer[] = [];
  let kept = 0;
  for (const part of textParts(bytes)) {
    const changed = changedPart(bytes, part, change);
    if (changed === null) continue;
    pieces.push(bytes.subarray(kept, part.header), changed);
    kept = part.to;
  }
  return pieces.length === 0 ? bytes : Buffer.concat([...pieces, bytes.subarray(kept)]);
}

function changedPart(bytes: Buffer, part: TextPart, change: ChangeText): Buffer | null {
  if (part.to - part.from > MAX_CHANGED_OCTETS) return null;
  const content = Buffer.concat([...octetsOf(bytes, part, part.encoding)].map((piece) => Buffer.from(piece)));
  const encoding = textEncodingOf(part, content);
  if (encoding === null) return null;
  const text = content.toString(encoding);
  const changed = change(text, part.kind, encoding === "utf8" || isAscii(content));
  if (changed === text) return null;
  const octets = Buffer.from(normalizeLineEnds(changed), encoding);
  const isWhole = part.to === bytes.length;
  return part.encoding === "base64"
    ? Buffer.concat([
        bytes.subarray(part.header, part.from),
        partBody(wrapBase64(octets.toString("base64")), isWhole),
      ])
    : Buffer.concat([quotedPrintableHeader(bytes, part), partBody(quotedPrintable(octets), isWhole)]);
}

/** Returns how the octets are read, or null if a change could break characters of their charset. */
function textEncodingOf({ charset }: TextPart, content: Buffer): "utf8" | "latin1" | null {
  if (UTF8.test(charset)) return isUtf8(content) ? "utf8" : "latin1";
  return ASCII_BASED.test(charset) ? "latin1" : null;
}

/**
 * Returns the body of a part. The line end before a delimiter belongs to the delimiter (RFC 2046 §5.1.1). A whole message
 * ends with one.
 */
export function partBody(text: string, isWhole: boolean): Buffer {
  const bare = text.replace(/\r\n$/, "");
  return Buffer.from(isWhole ? `${bare}\r\n` : bare, "latin1");
}

function quotedPrintableHeader(bytes: Buffer, { header, from }: TextPart): Buffer {
  const fields = rawFields(bytes.subarray(header, from));
  const others = fields.filter(({ name }) => name !== "content-transfer-encoding");
  const line = "Content-Transfer-Encoding: quoted-printable";
  return headerOctets([...others, { name: "content-transfer-encoding", line }]);
}
