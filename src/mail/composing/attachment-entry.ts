import { isAscii, isUtf8 } from "node:buffer";
import type { MailComposerAttachment } from "nodemailer/lib/mail-composer";
import { headerText } from "./header-fields.ts";
import { normalizeLineEnds } from "./text-entry.ts";
import { wireFault } from "./wire.ts";

export interface OutgoingAttachment {
  filename: string;
  contentType: string;
  bytes: Uint8Array;
  /** Without angle brackets: they are removed if given. */
  contentId?: string | null | undefined;
  disposition: "attachment" | "inline";
}

const TOKEN = "[A-Za-z0-9!#$&^_.+-]{1,127}";
const CONTENT_TYPE = new RegExp(
  `^${TOKEN}/${TOKEN}(?: *; *[A-Za-z0-9-]+=(?:${TOKEN}|"[ !#-\\[\\]-~]{0,127}"))*$`,
);

/**
 * Returns the attachment in the form that nodemailer's composer takes. An inline one with a Content-ID belongs to the
 * html, if there is any. Every other one is an ordinary attachment.
 */
export function attachmentEntry(attachment: OutgoingAttachment): MailComposerAttachment {
  const filename = headerText(attachment.filename);
  const id = contentId(attachment);
  const shown = attachment.disposition === "inline" && id !== "";
  const common = {
    filename: filename === "" ? (false as const) : filename,
    contentDisposition: attachment.disposition === "inline" ? "inline" : "attachment",
    ...(shown ? { cid: id } : id === "" ? {} : { headers: { "Content-ID": `<${id}>` } }),
  };
  const asMessage = messageBytes(attachment);
  if (asMessage !== null) return { ...common, contentType: "message/rfc822", content: asMessage };
  const { buffer, byteOffset, byteLength } = attachment.bytes;
  return {
    ...common,
    contentType: withCharset(wireContentType(attachment.contentType), attachment.bytes),
    content: Buffer.from(buffer, byteOffset, byteLength),
  };
}

function contentId(attachment: OutgoingAttachment): string {
  return (attachment.contentId ?? "").replace(/[^\x21-\x7e]|[<>]/g, "").slice(0, 512);
}

/** Sends message/rfc822 parts without base64 (RFC 2046 §5.2.1). One that does not fit 7bit is sent as plain bytes. */
function messageBytes(attachment: OutgoingAttachment): Buffer | null {
  if (!/^message\/rfc822\b/i.test(attachment.contentType)) return null;
  const text = normalizeLineEnds(Buffer.from(attachment.bytes).toString("latin1"));
  const bytes = Buffer.from(text.endsWith("\r\n") ? text : `${text}\r\n`, "latin1");
  return wireFault(bytes, false) === null ? bytes : null;
}

/** Returns the content type given if it fits a single part in base64, else the type of unknown bytes. */
function wireContentType(given: string): string {
  const type = headerText(given);
  return CONTENT_TYPE.test(type) && !/^(?:multipart|message)\//i.test(type)
    ? type
    : "application/octet-stream";
}

/**
 * Returns the type of a text file, with its charset if the sender named none and the bytes show it. Without a
 * charset it is US-ASCII (RFC 2046 §4.1.2), so readers and calendars would guess.
 */
function withCharset(type: string, bytes: Uint8Array): string {
  const isSilent = /^text\//i.test(type) && !/; *charset=/i.test(type);
  return isSilent && !isAscii(bytes) && isUtf8(bytes) ? `${type}; charset=utf-8` : type;
}
