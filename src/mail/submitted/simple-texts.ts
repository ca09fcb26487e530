import { isUtf8 } from "node:buffer";
import { octetsOf } from "../reading/part-octets.ts";
import { storedText } from "../text/stored-text.ts";
import { onlyTexts, type TextPart } from "./text-parts.ts";

/** The bodies of a message that has nothing else. */
export interface SimpleTexts {
  text: string | null;
  html: string | null;
}

/** Returns whether a message is one text, or a plain one and its html, that says it is in UTF-8. It has no files then. */
export function isSimple(raw: Uint8Array): boolean {
  return simpleParts(bufferOf(raw)) !== null;
}

/**
 * Reads a message that is one text part, or plain text and its HTML, in UTF-8. This is the usual form of submitted
 * messages. The full parser finds the same, but takes five times as long. Returns null for every other message.
 */
export function simpleTexts(raw: Uint8Array): SimpleTexts | null {
  const bytes = bufferOf(raw);
  const parts = simpleParts(bytes);
  if (parts === null) return null;
  const texts: SimpleTexts = { text: null, html: null };
  for (const part of parts) {
    const text = textOf(bytes, part);
    if (text === null) return null;
    texts[part.kind === "html" ? "html" : "text"] = text;
  }
  return texts;
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

function simpleParts(bytes: Buffer): TextPart[] | null {
  const parts = onlyTexts(bytes);
  return parts?.every(isSimplePart) === true ? parts : null;
}

function isSimplePart({ isFlowed, from, to, charset }: TextPart): boolean {
  return !isFlowed && from !== to && /^(?:utf-?8|us-ascii)$/.test(charset);
}

function textOf(bytes: Buffer, part: TextPart): string | null {
  const { encoding, from } = part;
  // Like the full parser, with the line end before the delimiter.
  const to = Math.min(part.to + "\r\n".length, bytes.length);
  const octets =
    encoding === "identity"
      ? bytes.subarray(from, to)
      : Buffer.concat([...octetsOf(bytes, { from, to }, encoding)].map((piece) => Buffer.from(piece)));
  if (!isUtf8(octets)) return null;
  const text = octets.toString("utf8").replaceAll("\r\n", "\n");
  return storedText(encoding === "identity" && !text.endsWith("\n") ? `${text}\n` : text);
}
