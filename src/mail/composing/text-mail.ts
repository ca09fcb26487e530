import { isAsciiText } from "../../core/text.ts";
import { type Chunk, contentOf, type Encoding, type Fields, joined } from "./mime-tree.ts";
import { hasLongLine, type TextEntry } from "./text-entry.ts";

/** Number of characters from which the composer no longer checks a body's lines. */
const MAX_CHARS = 128 * 1024;

/** The bodies of a message. Undefined: it has no such part. */
export interface Texts {
  text: TextEntry | undefined;
  html: TextEntry | undefined;
}

/**
 * Returns the bytes of a message without attachments, the same ones that the composer's tree would give. This is
 * the usual form, and making the tree takes longer than writing it. Null: the composer is needed.
 */
export function writeTexts({ text, html }: Texts, fields: TextMailFields, boundary: string): Buffer | null {
  if ((text?.content.length ?? 0) > MAX_CHARS || (html?.content.length ?? 0) > MAX_CHARS) return null;
  const parts: Part[] = [];
  if (text !== undefined) parts.push(partOf("text/plain", text));
  if (html !== undefined) parts.push(partOf("text/html", html));
  const [first, second] = parts;
  if (first === undefined) return null;
  const { before, own, after } = fields;
  if (second === undefined) {
    const [encoding, type] = headersOf(first);
    // The composer writes an encoding that it was given before the fields that follow it in its list.
    const inOrder = first.isGiven ? `${encoding}${own}` : `${own}${encoding}`;
    return joined([`${before}${inOrder}MIME-Version: 1.0\r\n${type}${after}\r\n`, first.content]);
  }
  const name = `--_NmP-${boundary}-Part_1`;
  const type = `Content-Type: multipart/alternative;\r\n boundary="${name}"\r\n`;
  return joined([
    `${before}${own}MIME-Version: 1.0\r\n${type}${after}\r\n`,
    ...withBoundary(first, name),
    ...withBoundary(second, name),
    `--${name}--\r\n`,
  ]);
}

/** The fields of a message besides those of MIME, as whole lines. `own`: Message-ID and Date. */
export interface TextMailFields extends Fields {
  own: string;
}

interface Part {
  type: "text/plain" | "text/html";
  encoding: Encoding;
  /** True if the encoding was given, not chosen. */
  isGiven: boolean;
  content: Chunk;
}

function partOf(type: Part["type"], entry: TextEntry): Part {
  const given = entry.contentTransferEncoding;
  const encoding = given ?? encodingOf(entry.content);
  return { type, encoding, isGiven: given !== undefined, content: contentOf(entry.content, encoding) };
}

function headersOf({ type, encoding }: Part): [encoding: string, type: string] {
  return [`Content-Transfer-Encoding: ${encoding}\r\n`, `Content-Type: ${type}; charset=utf-8\r\n`];
}

/** Returns a part with the boundary before it, and the line end that belongs to the next one. */
function withBoundary(part: Part, boundary: string): Chunk[] {
  const [encoding, type] = headersOf(part);
  return [`--${boundary}\r\n${type}${encoding}\r\n`, part.content, "\r\n"];
}

/** Returns the encoding that the composer chooses for a body without controls. */
function encodingOf(content: string): Encoding {
  if (isAsciiText(content) && !hasLongLine(content)) return "7bit";
  let letters = 0;
  let beyondAscii = 0;
  for (let at = 0; at < content.length; at++) {
    const code = content.charCodeAt(at);
    if (code >= 0x80) beyondAscii++;
    else if ((code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a)) letters++;
  }
  return beyondAscii < letters ? "quoted-printable" : "base64";
}
