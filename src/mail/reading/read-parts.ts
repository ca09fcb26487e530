import { isAscii } from "node:buffer";
import type { Attachment } from "postal-mime";
import { fileBytes, fileSize } from "./file-octets.ts";
import { type MailText, mailText, partText } from "./mail-text.ts";
import {
  type MimePart,
  openReader,
  type Reader,
  type TextEntry,
  type TextKind,
} from "../decoding/mime-part.ts";
import { readTree, type Span } from "./mime-tree.ts";
import { octetsOf } from "./part-octets.ts";
import { repairParts } from "./part-repairs.ts";
import { rendered, type Room, roomFor } from "./rendered-text.ts";
import { MAX_HEADER_OCTETS } from "./raw-headers.ts";
import { type Encoding, encodingOf } from "../decoding/transfer-decoders.ts";

/** Maximum number of levels of nested multiparts that are read. */
export const MAX_NESTING_DEPTH = 50;

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
  const spans = await readTree(reader, header, raw, body);
  const parts: Parts = { reader, raw, spans, files: [], texts: new Map() };
  repairParts(reader.root, (part) => ({
    content: () => contentOf(parts, part),
    isAscii: () => isWrittenInAscii(parts, part),
  }));
  await collect(parts);
  return { text: textOf(parts, "plain"), html: textOf(parts, "html"), files: filesOf(parts) };
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
