import { decodeWords } from "postal-mime";
import { joinedWords } from "../decoding/encoded-words.ts";
import { fieldValue, firstValue, MAX_HEADER_OCTETS, type RawField, rawFields } from "./raw-headers.ts";
import { storedLine } from "../text/stored-text.ts";

/**
 * Maximum number of message ids of a References field that are kept: the first and the newest ones (RFC 5322 §3.6.4
 * sets no limit).
 */
export const MAX_REFERENCES = 100;
/** Maximum characters of a Message-ID that is accepted. RFC 5322 §2.1.1 limits a line to 998. */
export const MAX_MESSAGE_ID_CHARS = 998;
/** Maximum characters of one header value that are kept. */
export const MAX_HEADER_VALUE_CHARS = 16 * 1024;

export interface HeaderField {
  /** As written. */
  name: string;
  /** Unfolded, not decoded. */
  value: string;
}

/** The fields of a message that threading and loop protection need. */
export interface HeaderBlock {
  fields: readonly HeaderField[];
  subject: string;
  /** With angle brackets; null if there is none. */
  messageId: string | null;
  inReplyTo: string | null;
  /** Oldest first. */
  references: string[];
  /** The keyword of Auto-Submitted (RFC 3834 §5) in lower case, such as `auto-replied`; null without the field. */
  autoSubmitted: string | null;
}

/** Reads only the header block: no MIME, no bodies. Never throws. */
export function headerBlock(raw: Uint8Array): HeaderBlock {
  return headerBlockOf(rawFields(raw));
}

/** Returns the header block that consists of those fields. */
export function headerBlockOf(present: readonly RawField[]): HeaderBlock {
  const value = (name: string): string => firstValue(present, name) ?? "";
  const auto = firstValue(present, "auto-submitted");
  const references = boundedReferences(messageIdsIn(value("references"), MAX_HEADER_OCTETS));
  let fields: readonly HeaderField[] | undefined;
  return {
    // On demand, because a submission rarely needs all of them.
    get fields() {
      fields ??= present.map(toHeaderField);
      return fields;
    },
    subject: decodedText(value("subject")),
    messageId: messageIdsIn(value("message-id"))[0] ?? null,
    inReplyTo: messageIdsIn(value("in-reply-to"))[0] ?? null,
    references,
    autoSubmitted: auto === null ? null : (/^[a-z-]*/.exec(auto.toLowerCase())?.[0] ?? ""),
  };
}

/** Returns the field as the API shows it. */
export function toHeaderField(field: RawField): HeaderField {
  const name = field.line.slice(0, field.line.indexOf(":")).trimEnd();
  const value = fieldValue(field);
  const isTrimmed = field.name === "references" && value.length > MAX_HEADER_VALUE_CHARS;
  return { name, value: storedLine(isTrimmed ? trimmedReferences(value) : value, MAX_HEADER_VALUE_CHARS) };
}

/** Returns as many ids as are shown: the first and the newest, which are at the end (RFC 5537 §3.4.4). */
function trimmedReferences(value: string): string {
  const [first = "", ...newest] = boundedReferences(messageIdsIn(value, MAX_HEADER_OCTETS));
  const shown: string[] = [];
  let room = MAX_HEADER_VALUE_CHARS - first.length;
  for (const id of newest.reverse()) {
    room -= 1 + id.length;
    if (room < 0) break;
    shown.unshift(id);
  }
  return [first, ...shown].join(" ");
}

/** Returns a header's text on one line, with its encoded words (RFC 2047) decoded. Broken ones stay unchanged. */
export function decodedText(value: string): string {
  return storedLine(wordsDecoded(value.slice(0, MAX_HEADER_VALUE_CHARS)), MAX_HEADER_VALUE_CHARS);
}

/** Returns a value with its encoded words decoded, controls included. Broken words stay unchanged. */
export function wordsDecoded(value: string): string {
  if (!value.includes("=?")) return value;
  try {
    return decodeWords(joinedWords(value));
  } catch {
    return value;
  }
}

/**
 * Returns the message ids in a field value, each with its angle brackets. A single word without brackets counts as an
 * id.
 * @param maxChars characters of the value that are read
 */
export function messageIdsIn(value: string, maxChars = MAX_HEADER_VALUE_CHARS * 4): string[] {
  const text = storedLine(value, maxChars);
  // Spaces may be next to the brackets (RFC 5322 §4.5.4). They do not belong to the id.
  const ids = Array.from(text.matchAll(/<\s*([^<>\s]+)\s*>/g), ([, id]) => `<${id}>`);
  if (ids.length === 0 && isBareId(text)) ids.push(`<${text}>`);
  return ids.filter((id) => id.length <= MAX_MESSAGE_ID_CHARS);
}

/** A word with an "@" inside. One pattern for both would take the square of the length of a field of only "@". */
function isBareId(text: string): boolean {
  return /^[^<>\s]+$/.test(text) && text.slice(1, -1).includes("@");
}

function boundedReferences(ids: string[]): string[] {
  const [first] = ids;
  if (first === undefined || ids.length <= MAX_REFERENCES) return ids;
  return [first, ...ids.slice(1 - MAX_REFERENCES)];
}
