import { isAscii } from "node:buffer";
import { ASCII_NAMES, decoderNamed } from "../decoding/charsets.ts";
import { joinedWords } from "../decoding/encoded-words.ts";
import { isText, type MimePart } from "../decoding/mime-part.ts";

/** Maximum octets of a page that are searched for its charset, as in a browser. */
const MAX_META_OCTETS = 1024;

/** The body of a part, for questions about its charset. */
export interface PartBody {
  /** Yields the decoded content piece by piece; use each piece before the next. */
  content(): Iterable<Uint8Array>;
  /** Returns true if the content must be ASCII, without reading it. */
  isAscii(): boolean;
}

/**
 * Corrects parts that the MIME reader would misread. Such a part has an unknown or unnamed charset, a malformed type,
 * a name whose words divide its characters, or is an attached text file. It runs after all parts are known and
 * before they become bodies or attachments.
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
  // RFC 2045 §5.2: a malformed type does not count, and a part without a type is plain text, unless it was attached
  // as a file.
  if (!parsed.value.includes("/") && nameOf(part) === "") parsed.value = "text/plain";
  parsed.params.charset ??= LATE_CHARSET.exec(parsed.value)?.[1] ?? "";
  parsed.value = bareType(parsed.value);
  if (isOtherText(part, parent) || (parent !== null && isLostText(part, bodyOf))) showAsText(part);
  if (isText(part)) {
    nameCharset(parsed, bodyOf(part));
    if (isFile(part, parent, place)) part.contentDisposition.parsed.value = "attachment";
  }
  for (const [at, child] of part.childNodes.entries()) repair(child, part, at, bodyOf);
}

/** Kinds of text that are data for programs. Each is a file. */
const DATA =
  /^text\/(?:calendar|(?:x-)?vcard|directory|(?:x-)?vcalendar|csv|tab-separated-values|rfc822-headers|x-amp-html|x-watch-html|css|(?:java|ecma)script|x-javascript|xml|rtf|json|yaml|x-moz-deleted)$/;

/** Returns whether a part is text of another kind, which is shown as plain text (RFC 2046 §4.1.4). */
function isOtherText(part: MimePart, parent: MimePart | null): boolean {
  const { value } = part.contentType.parsed;
  if (!value.startsWith("text/") || isText(part) || DATA.test(value) || nameOf(part) !== "") return false;
  if (part.contentDisposition.parsed.value === "attachment") return false;
  // Another form of the message is its plain text already.
  const isPlain = (other: MimePart): boolean => other.contentType.parsed.value === "text/plain";
  return parent?.contentType.multipart !== "alternative" || !parent.childNodes.some(isPlain);
}

/** Returns whether a multipart has no parts, but text. `typeByBody` answers for the message itself. */
function isLostText(part: MimePart, bodyOf: (part: MimePart) => PartBody): boolean {
  if (part.contentType.multipart === false || part.childNodes.length > 0) return false;
  for (const piece of bodyOf(part).content()) if (piece.some((octet) => octet > 0x20)) return true;
  return false;
}

function showAsText(part: MimePart): void {
  part.isEnriched = /^text\/(?:enriched|richtext)$/.test(part.contentType.parsed.value);
  part.contentType.parsed.value = "text/plain";
  part.contentType.multipart = false;
}

/** A charset behind a type that lacks its semicolon. */
const LATE_CHARSET = /[\s,]charset\s*=\s*["']?([^\s"',;]{1,60})/i;
/** Names that no other kind has, by which programs mean plain text and html. */
const MEANT: readonly (readonly [RegExp, string])[] = [
  [/^(?:plain\/(?:text|plain)|txt\/\w+|text\/(?:txt|text|plain-?text))$/, "text/plain"],
  [/^html\/(?:text|html)$/, "text/html"],
];

/** Returns only the type and subtype, without spaces around the slash and without text that lacks its semicolon. */
function bareType(value: string): string {
  const [, type, subtype] = /^([^\s/,]+)\s*\/\s*([^\s/,]+)/.exec(value) ?? [];
  if (type === undefined) return value;
  const bare = `${type}/${subtype}`;
  return MEANT.find(([pattern]) => pattern.test(bare))?.[1] ?? bare;
}

/**
 * Returns whether a text part is a file: it has a name and follows other parts, whatever its disposition (RFC 8621
 * §4.1.4). Shown as text it would lose its name and its end.
 */
function isFile(part: MimePart, parent: MimePart | null, place: number): boolean {
  return (
    nameOf(part) !== "" && place > 0 && parent !== null && parent.contentType.multipart !== "alternative"
  );
}

function nameOf({ contentType, contentDisposition }: MimePart): string {
  return contentDisposition.parsed.params.filename ?? contentType.parsed.params.name ?? "";
}

/**
 * Names the charset of a text part that names none: UTF-8 if the bytes are valid, else that of old programs.
 */
function nameCharset({ value, params }: MimePart["contentType"]["parsed"], body: PartBody): void {
  const charset = (params.charset ?? "").trim().toLowerCase();
  const unnamed = charset === "" || ASCII_NAMES.has(charset);
  if ((!unnamed && decoderNamed(charset) !== null) || body.isAscii()) return;
  const octets = kindOf(body.content());
  if (octets === "utf-8") params.charset = "utf-8";
  if (octets === "other" && unnamed)
    params.charset = (value === "text/html" ? metaCharset(body.content()) : null) ?? "windows-1252";
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
 * Returns the charset that a page names in its head. Null if it is unknown, or has two octets per character: then the
 * head could not be found.
 */
function metaCharset(content: Iterable<Uint8Array>): string | null {
  let head = "";
  for (const piece of content) {
    head += Buffer.from(piece.subarray(0, MAX_META_OCTETS - head.length)).toString("latin1");
    if (head.length >= MAX_META_OCTETS) break;
  }
  const charset = /<meta\b[^>]{0,200}?\bcharset\s*=\s*["']?([a-z0-9_:.-]{1,40})/i.exec(head)?.[1] ?? "";
  const encoding = decoderNamed(charset)?.encoding;
  return encoding === undefined || encoding.startsWith("utf-16") ? null : charset;
}
