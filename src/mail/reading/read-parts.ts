import { isAscii } from "node:buffer";
import type { Attachment } from "postal-mime";
import type { Unread } from "../../core/messages/unread.ts";
import { type MailText, mailText, partText } from "./mail-text.ts";
import {
  type MimePart,
  openReader,
  type Reader,
  type TextEntry,
  type TextKind,
} from "../decoding/mime-part.ts";
import { MAX_NESTING_DEPTH, readTree, type Span } from "./mime-tree.ts";
import { octetsOf } from "./part-octets.ts";
import { repairParts } from "./part-repairs.ts";
import { rendered, type Room, roomFor } from "./rendered-text.ts";
import { MAX_HEADER_OCTETS } from "./raw-headers.ts";
import { type Encoding, encodingOf } from "../decoding/transfer-decoders.ts";

/** An attachment, whose bytes stay in the mail. */
export interface ReadFile {
  /** The attachment without its content. */
  attachment: Attachment;
  size: () => number;
  bytes: () => Uint8Array;
}

export interface ReadParts {
  text: MailText | null;
  html: MailText | null;
  files: ReadFile[];
  /** Why the last file holds parts that were not read; null if all were. */
  unread: Unread | null;
}

interface Parts {
  reader: Reader;
  raw: Uint8Array;
  spans: ReadonlyMap<MimePart, Span>;
  /** The parts of the attachments, in order. */
  files: MimePart[];
  /** The text parts, by the name put in their place. */
  texts: Map<string, MimePart>;
}

/**
 * Reads the parts of a message. Rejects if the MIME reader rejects it.
 * @param header the fields of its MIME structure, each line ended
 * @param body the start of the message's body
 */
export async function readParts(raw: Uint8Array, header: Uint8Array, body: number): Promise<ReadParts> {
  const reader = openReader({ maxNestingDepth: MAX_NESTING_DEPTH, maxHeadersSize: MAX_HEADER_OCTETS });
  const { spans, rest } = await readTree(reader, header, raw, body);
  const parts: Parts = { reader, raw, spans, files: [], texts: new Map() };
  repairParts(reader.root, (part) => ({
    content: () => contentOf(parts, part),
    isAscii: () => isWrittenInAscii(parts, part),
  }));
  await collect(parts);
  return {
    text: textOf(parts, "plain"),
    html: textOf(parts, "html"),
    files: [...filesOf(parts), ...(rest === null ? [] : [unreadFile(raw, rest.from)])],
    unread: rest?.reason ?? null,
  };
}

const NO_SPAN: Span = { from: 0, to: 0 };

function spanOf({ spans }: Parts, part: MimePart): Span {
  return spans.get(part) ?? NO_SPAN;
}

function contentOf(parts: Parts, part: MimePart): Iterable<Uint8Array> {
  return octetsOf(parts.raw, spanOf(parts, part), encodingOfPart(part));
}

/** Returns whether the body's octets are its content, and all ASCII. */
function isWrittenInAscii(parts: Parts, part: MimePart): boolean {
  const { from, to } = spanOf(parts, part);
  return encodingOfPart(part) === "identity" && isAscii(parts.raw.subarray(from, to));
}

function encodingOfPart({ contentTransferEncoding }: MimePart): Encoding {
  return encodingOf(contentTransferEncoding.encoding);
}

/** Makes the reader classify each part, with a name in place of each text. */
async function collect({ reader, files, texts }: Parts): Promise<void> {
  const collectAttachment = reader.collectAttachment.bind(reader);
  reader.collectAttachment = (part, ...more) => {
    collectAttachment(part, ...more);
    files.push(part);
  };
  nameTexts(reader.root, texts);
  reader.forceRfc822Attachments = true;
  await reader.collectNode(reader.root, false, false);
}

/** Depth is bounded by the reader's own limit. */
function nameTexts(part: MimePart, texts: Map<string, MimePart>): void {
  const name = String(texts.size);
  texts.set(name, part);
  part.getTextContent = () => name;
  for (const child of part.childNodes) nameTexts(child, texts);
}

/**
 * Yields the text parts of that kind one after another. Parts that exist only in the other kind are rendered,
 * within the room left.
 */
function textOf(parts: Parts, kind: TextKind): MailText | null {
  const { textMap, textTypes } = parts.reader;
  if (!textTypes.has(kind)) return null;
  const texts = [...textMap.values()].flatMap((entry) => textsIn(parts, entry, kind));
  return mailText(function* () {
    const room = roomFor(kind);
    let first = true;
    for (const text of texts) {
      if (!first) yield "\n";
      first = false;
      yield* text(room);
    }
  });
}

function textsIn(parts: Parts, entry: TextEntry, kind: TextKind): ((room: Room) => Iterable<string>)[] {
  const own = entry[kind];
  const shown = own ?? Object.values(entry).flat();
  return shown.map(({ value }) => {
    const part = parts.texts.get(value);
    const text = (): Iterable<string> => (part === undefined ? [] : partText(part, contentOf(parts, part)));
    return own === undefined ? rendered(text, kind) : text;
  });
}

function filesOf(parts: Parts): ReadFile[] {
  const { raw, reader, files } = parts;
  return reader.attachments.map((attachment, at) => {
    // The reader collects an attachment for each of these parts.
    const part = files[at] ?? reader.root;
    const body = { span: spanOf(parts, part), encoding: encodingOfPart(part), alone: part === reader.root };
    return { attachment, size: () => fileSize(raw, body), bytes: () => fileBytes(raw, body) };
  });
}

/** Returns what follows the last part that was read, as a file, so that a reader sees that there is more. */
function unreadFile(raw: Uint8Array, from: number): ReadFile {
  const attachment: Attachment = {
    filename: "unread-parts.txt",
    mimeType: "application/octet-stream",
    disposition: "attachment",
    content: "",
  };
  const body: FileBody = { span: { from, to: raw.length }, encoding: "identity", alone: true };
  return { attachment, size: () => fileSize(raw, body), bytes: () => fileBytes(raw, body) };
}

const [TAB, LF, CR, SPACE, EQUALS] = [0x09, 0x0a, 0x0d, 0x20, 0x3d];

interface FileBody {
  span: Span;
  /** If it is identity, the lines are the content's own (RFC 2045 §6.2). */
  encoding: Encoding;
  /** Set if it is the whole message's body. Then no delimiter follows, and the last line end belongs to the file. */
  alone: boolean;
}

/**
 * Yields the octets of a file piece by piece; use each piece before the next. Lines end as they arrived, with CRLF
 * (RFC 5322 §2.3); in quoted-printable, too (RFC 2045 §6.7 rule 4). The line end before a delimiter belongs to the
 * delimiter (RFC 2046 §5.1.1), unless a soft break precedes it.
 */
function* pieces(raw: Uint8Array, { span, encoding, alone }: FileBody): Generator<Uint8Array> {
  const identity = encoding === "identity";
  const cut = !alone && (identity || (encoding === "quoted-printable" && !breaksSoftly(raw, span)));
  let lineEnd = false;
  for (const octets of octetsOf(raw, span, encoding, "crlf")) {
    if (lineEnd) yield CRLF;
    const written = identity ? withCrlf(octets) : octets;
    lineEnd = cut && endsLine(written);
    const kept = lineEnd ? written.subarray(0, -CRLF.length) : written;
    if (kept.length > 0) yield kept;
  }
}

function endsLine(octets: Uint8Array): boolean {
  return octets.at(-1) === LF && octets.at(-2) === CR;
}

/** Returns whether the line end after a quoted-printable body is not part of its content (RFC 2045 §6.7, rule 5). */
function breaksSoftly(raw: Uint8Array, { from, to }: Span): boolean {
  let end = raw[to - 1] === LF ? to - 1 : to;
  while (end > from && (raw[end - 1] === CR || raw[end - 1] === SPACE || raw[end - 1] === TAB)) end--;
  return end > from && raw[end - 1] === EQUALS;
}

const CRLF = Uint8Array.of(CR, LF);

function withCrlf(octets: Uint8Array): Uint8Array {
  const memory = new Uint8Array(octets.length * 2);
  let size = 0;
  for (let at = 0; at < octets.length; at++) {
    const octet = octets[at] ?? 0;
    if (octet === LF) memory[size++] = CR;
    memory[size++] = octet;
  }
  return memory.subarray(0, size);
}

function fileSize(raw: Uint8Array, file: FileBody): number {
  let size = 0;
  for (const { length } of pieces(raw, file)) size += length;
  return size;
}

/** Returns a copy of a file's bytes. */
function fileBytes(raw: Uint8Array, file: FileBody): Uint8Array {
  const bytes = new Uint8Array(fileSize(raw, file));
  let at = 0;
  for (const piece of pieces(raw, file)) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
