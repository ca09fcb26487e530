import { decodeWords } from "postal-mime";
import { joinedWords } from "./encoded-words.ts";
import { fieldValue, firstValue, MAX_HEADER_OCTETS, type RawField, rawFields } from "./raw-headers.ts";
import { storedLine } from "../stored-text.ts";

/** Message ids of a References field that are kept: the first and the newest (RFC 5322 §3.6.4 sets no end to it). */
export const MAX_REFERENCES = 100;
/** Characters of a Message-ID that is taken as one; RFC 5322 §2.1.1 bounds a line to 998. */
export const MAX_MESSAGE_ID_CHARS = 998;
/** Characters of one header value that are kept. */
export const MAX_HEADER_VALUE_CHARS = 16 * 1024;

export interface HeaderField {
  /** As written. */
  name: string;
  /** Unfolded, not decoded. */
  value: string;
}

/** What threading and loop protection need to know of a mail. */
export interface HeaderBlock {
  fields: readonly HeaderField[];
  subject: string;
  /** With angle brackets; null where there is none. */
  messageId: string | null;
  inReplyTo: string | null;
  /** Oldest first. */
  references: string[];
  /** The keyword of Auto-Submitted (RFC 3834 §5) in lower case, e.g. `auto-replied`; null without the field. */
  autoSubmitted: string | null;
}

/** Reads the header block alone: no MIME, no bodies. Never throws. */
export function headerBlock(raw: Uint8Array): HeaderBlock {
  return headerBlockOf(rawFields(raw));
}

/** The header block that those fields are. */
export function headerBlockOf(present: readonly RawField[]): HeaderBlock {
  const value = (name: string): string => firstValue(present, name) ?? "";
  const auto = firstValue(present, "auto-submitted");
  const references = boundedReferences(messageIdsIn(value("references"), MAX_HEADER_OCTETS));
  return {
    fields: present.map(toHeaderField),
    subject: decodedText(value("subject")),
    messageId: messageIdsIn(value("message-id"))[0] ?? null,
    inReplyTo: messageIdsIn(value("in-reply-to"))[0] ?? null,
    references,
    autoSubmitted: auto === null ? null : (/^[a-z-]*/.exec(auto.toLowerCase())?.[0] ?? ""),
  };
}

/** The field as it is shown. */
export function toHeaderField(field: RawField): HeaderField {
  const name = field.line.slice(0, field.line.indexOf(":")).trimEnd();
  const value = fieldValue(field);
  const isTrimmed = field.name === "references" && value.length > MAX_HEADER_VALUE_CHARS;
  return { name, value: storedLine(isTrimmed ? trimmedReferences(value) : value, MAX_HEADER_VALUE_CHARS) };
}

/** As many ids as are shown: the first, and the newest, which lie at the end (RFC 5537 §3.4.4). */
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

/** A header text with its encoded words (RFC 2047) decoded, on one line. Broken ones stay as they are. */
export function decodedText(value: string): string {
  const bounded = value.slice(0, MAX_HEADER_VALUE_CHARS);
  try {
    return storedLine(decodeWords(joinedWords(bounded)), MAX_HEADER_VALUE_CHARS);
  } catch {
    return storedLine(bounded, MAX_HEADER_VALUE_CHARS);
  }
}

/**
 * The message ids in a field value, each with its angle brackets; one bare word counts as an id without them.
 * @param maxChars of the value, that are looked at
 */
export function messageIdsIn(value: string, maxChars = MAX_HEADER_VALUE_CHARS * 4): string[] {
  const text = storedLine(value, maxChars);
  // Spaces may stand beside the brackets (RFC 5322 §4.5.4), and are none of the id.
  const ids = Array.from(text.matchAll(/<\s*([^<>\s]+)\s*>/g), ([, id]) => `<${id}>`);
  if (ids.length === 0 && isBareId(text)) ids.push(`<${text}>`);
  return ids.filter((id) => id.length <= MAX_MESSAGE_ID_CHARS);
}

/** A word with an "@" within. Asked for both at once, a field of nothing but "@" would take the square of its length. */
function isBareId(text: string): boolean {
  return /^[^<>\s]+$/.test(text) && text.slice(1, -1).includes("@");
}

function boundedReferences(ids: string[]): string[] {
  const [first] = ids;
  if (first === undefined || ids.length <= MAX_REFERENCES) return ids;
  return [first, ...ids.slice(1 - MAX_REFERENCES)];
}
