import { isAscii } from "node:buffer";
import { ASCII_NAMES, decoderOf } from "./charsets.ts";
import { joinedWords } from "./encoded-words.ts";
import { isText, type MimePart } from "./mime-part.ts";
import { rareDecoderOf } from "./rare-charsets.ts";

/** Octets of a page in which its charset is looked for, as in a browser. */
const MAX_META_OCTETS = 1024;

/** What is asked of a part's body. */
export interface PartBody {
  /** What it stands for, piece by piece; each is used before the next one. */
  content(): Iterable<Uint8Array>;
  /** Whether it is sure, without a look at that, to stand for ASCII. */
  isAscii(): boolean;
}

/**
 * Has parts taken for what they are where the MIME reader would not: text in a charset that is not named or not known, a
 * malformed type, a file of text that came along, a name whose words divide its characters. All parts are known then, and
 * none is made text or attachment yet.
 */
export function repairParts(root: MimePart, bodyOf: (part: MimePart) => PartBody): void {
  repair(root, null, 0, bodyOf);
}

/** Depth is bounded by the reader's own limit. */
function repair(
  part: MimePart,
  parent: MimePart | null,
  place: number,
  bodyOf: (part: MimePart) => PartBody,
): void {
  const { parsed } = part.contentType;
  const { params } = part.contentDisposition.parsed;
  if (params.filename !== undefined) params.filename = joinedWords(params.filename);
  if (parsed.params.name !== undefined) parsed.params.name = joinedWords(parsed.params.name);
  // RFC 2045 §5.2: a type that breaks the grammar is none, and what has none is plain text, unless it came as a file.
  if (!parsed.value.includes("/") && nameOf(part) === "") parsed.value = "text/plain";
  parsed.value = bareType(parsed.value);
  if (isText(part)) {
    nameCharset(parsed, bodyOf(part));
    if (isFile(part, parent, place)) part.contentDisposition.parsed.value = "attachment";
  }
  for (const [at, child] of part.childNodes.entries()) repair(child, part, at, bodyOf);
}

/** The type and subtype alone, without spaces beside the slash and what stands behind it without a semicolon. */
function bareType(value: string): string {
  const [, type, subtype] = /^([^\s/,]+)\s*\/\s*([^\s/,]+)/.exec(value) ?? [];
  return type === undefined ? value : `${type}/${subtype}`;
}

/**
 * A text with a name that stands behind other parts came along as a file, whether or not its disposition says so
 * (RFC 8621 §4.1.4); shown as text it would lose its name and its end.
 */
function isFile(part: MimePart, parent: MimePart | null, place: number): boolean {
  return (
    nameOf(part) !== "" && place > 0 && parent !== null && parent.contentType.multipart !== "alternative"
  );
}

function nameOf({ contentType, contentDisposition }: MimePart): string {
  return contentDisposition.parsed.params.filename ?? contentType.parsed.params.name ?? "";
}

/** What is to be read as text that does not say how: UTF-8 where it is that, else what old programs write. */
function nameCharset({ value, params }: MimePart["contentType"]["parsed"], body: PartBody): void {
  const charset = (params.charset ?? "").trim().toLowerCase();
  const unnamed = charset === "" || ASCII_NAMES.has(charset);
  if ((!unnamed && isKnown(charset)) || body.isAscii()) return;
  const octets = kindOf(body.content());
  if (octets === "utf-8") params.charset = "utf-8";
  if (octets === "other" && unnamed)
    params.charset = (value === "text/html" ? metaCharset(body.content()) : null) ?? "windows-1252";
}

function isKnown(charset: string): boolean {
  return decoderOf(charset) !== null || rareDecoderOf(charset) !== null;
}

function kindOf(content: Iterable<Uint8Array>): "ascii" | "utf-8" | "other" {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let ascii = true;
  try {
    for (const piece of content) {
      if (ascii && isAscii(piece)) continue;
      ascii = false;
      decoder.decode(piece, { stream: true });
    }
    decoder.decode();
    return ascii ? "ascii" : "utf-8";
  } catch {
    return "other";
  }
}

/**
 * The charset that a page names in its head; null where it names none that is known, or one of two octets a character,
 * in which its head would not be found.
 */
function metaCharset(content: Iterable<Uint8Array>): string | null {
  let head = "";
  for (const piece of content) {
    head += Buffer.from(piece.subarray(0, MAX_META_OCTETS - head.length)).toString("latin1");
    if (head.length >= MAX_META_OCTETS) break;
  }
  const charset = /<meta\b[^>]{0,200}?\bcharset\s*=\s*["']?([a-z0-9_:.-]{1,40})/i.exec(head)?.[1] ?? "";
  const encoding = decoderOf(charset)?.encoding;
  return encoding === undefined || encoding.startsWith("utf-16") ? null : charset;
}
