import { createHash } from "node:crypto";
import MailComposer from "nodemailer/lib/mail-composer";
import type { Mailbox } from "../../core/addresses.ts";
import { isInvitation } from "../../core/messages/calendar.ts";
import { isReservedHeader } from "../../core/messages/send-rules.ts";
import {
  customValue,
  fieldValue,
  headerField,
  headerText,
  mailboxText,
  messageIds,
  needsSmtpUtf8,
  unstructured,
} from "./header-fields.ts";
import { writeTree } from "./mime-tree.ts";
import { textEntry, normalizeLineEnds } from "./text-entry.ts";
import { writeTexts } from "./text-mail.ts";
import { wireFault } from "./wire.ts";
import { isAscii, isUtf8 } from "node:buffer";
import type { MailComposerAttachment } from "nodemailer/lib/mail-composer";

/** The content of a message. The envelope recipients (Bcc included) are not part of it. */
export interface OutgoingMail {
  from: Mailbox;
  to: readonly Mailbox[];
  cc?: readonly Mailbox[] | undefined;
  replyTo?: readonly Mailbox[] | undefined;
  subject: string;
  text?: string | null | undefined;
  html?: string | null | undefined;
  /** The sender's own fields. Names that compose writes itself are refused. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Our own fields, such as In-Reply-To or List-Unsubscribe. They replace custom fields of the same name. */
  extraHeaders?: readonly (readonly [name: string, value: string])[] | undefined;
  /** Our fields for what the sender's own do not say. */
  unlessGiven?: readonly (readonly [name: string, value: string])[] | undefined;
  attachments?: readonly OutgoingAttachment[] | undefined;
  /** With angle brackets. Boundaries are derived from it. */
  messageId: string;
  /** Milliseconds since the epoch. */
  date: number;
}

export type { OutgoingAttachment };

export interface ComposedMail {
  raw: Buffer;
  /**
   * Set if an address in the header is beyond ASCII: only a peer with SMTPUTF8 may get this message (RFC 6531 §3.2).
   */
  smtpUtf8: boolean;
}

const MESSAGE_ID_FIELDS = /^(?:in-reply-to|references)$/i;

/**
 * Returns the bytes of a message. Equal input gives equal bytes, so a retry is the same message. All lines end in
 * CRLF and have at most 998 octets. There is no bare CR, bare LF or NUL, nor an octet beyond ASCII unless `smtpUtf8`
 * is set. Throws for a reserved or malformed field name and for an invalid address: the caller checks those.
 */
export function compose(mail: OutgoingMail): ComposedMail {
  const smtpUtf8 = [mail.from, ...mail.to, ...(mail.cc ?? []), ...(mail.replyTo ?? [])].some(({ email }) =>
    needsSmtpUtf8(email),
  );
  const boundary = boundaryOf(mail.messageId);
  const raw = composeTree(mail, boundary, smtpUtf8);
  const fault = wireFault(raw, smtpUtf8);
  if (fault !== null) throw new Error(`composed mail has ${fault}`);
  return { raw, smtpUtf8 };
}

function composeTree(mail: OutgoingMail, boundary: string, smtpUtf8: boolean): Buffer {
  const text = textEntry(mail.text, boundary);
  const html = textEntry(mail.html, boundary);
  const messageId = fieldValue("Message-ID", messageIds(mail.messageId, smtpUtf8));
  const [before, after] = [ownFields(mail), furtherFields(mail, smtpUtf8)];
  if (mail.attachments === undefined || mail.attachments.length === 0) {
    const date = new Date(mail.date).toUTCString().replace("GMT", "+0000");
    const own = `${messageId.value === "" ? "" : `Message-ID: ${messageId.value}\r\n`}Date: ${date}\r\n`;
    const written = writeTexts({ text, html }, { before, own, after }, boundary);
    if (written !== null) return written;
  }
  const tree = new MailComposer({
    disableFileAccess: true,
    disableUrlAccess: true,
    baseBoundary: boundary,
    // The composer would write these two by itself.
    headers: [
      { key: "Message-ID", value: messageId },
      { key: "Date", value: new Date(mail.date) },
    ],
    text,
    html,
    // The last alternative is the one that programs prefer (RFC 2046 §5.1.4).
    alternatives: (mail.attachments ?? []).filter(isInvitation).slice(0, 1).map(invitationEntry),
    attachments: (mail.attachments ?? []).map(attachmentEntry),
  }).compile();
  return writeTree(tree, { before, after });
}

/** A boundary with "=_" never occurs in quoted-printable or base64 (RFC 2045 §6.7). `textEntry` avoids it in 7bit. */
function boundaryOf(messageId: string): string {
  return `=_${createHash("sha256").update(messageId).digest("hex").slice(0, 24)}`;
}

/** Returns the fields of the message in order. The fields of MIME follow them. */
function ownFields({ from, to, cc = [], replyTo = [], subject }: OutgoingMail): string {
  const fields: [name: string, value: string][] = [
    ["From", mailboxText(from)],
    // RFC 5322 §3.6.3 allows a message without To. An empty group shows that it has hidden recipients only.
    ["To", to.length === 0 ? '"undisclosed-recipients":;' : addressList(to)],
    ["Cc", addressList(cc)],
    ["Reply-To", addressList(replyTo)],
  ];
  const present = fields.filter(([, value]) => value !== "");
  // An empty subject is written too. Filters count a missing one as a fault, and a relay could add one to a signed
  // message.
  const all = [...present, ["Subject", unstructured(subject)] as const];
  return all.map(([name, value]) => headerField(name, value)).join("");
}

function addressList(mailboxes: readonly Mailbox[]): string {
  return mailboxes.map(mailboxText).join(", ");
}

/** Returns our further fields and the sender's. */
function furtherFields(
  { headers = {}, extraHeaders = [], unlessGiven = [] }: OutgoingMail,
  smtpUtf8: boolean,
): string {
  const own = new Set(extraHeaders.map(([name]) => name.toLowerCase()));
  const custom = Object.entries(headers).filter(([name]) => !own.has(name.toLowerCase()));
  const given = new Set(custom.map(([name]) => name.toLowerCase()));
  const missing = unlessGiven.filter(([name]) => !given.has(name.toLowerCase()));
  const fields = [...extraHeaders, ...missing, ...custom].map(([name, value]) => {
    if (isReservedHeader(name))
      throw new Error(`the header field ${headerText(name)} is not the sender's to set`);
    const encoded = MESSAGE_ID_FIELDS.test(name) ? messageIds(value, smtpUtf8) : customValue(value);
    return encoded === "" ? "" : headerField(name, encoded);
  });
  return fields.join("");
}

interface OutgoingAttachment {
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
function attachmentEntry(attachment: OutgoingAttachment): MailComposerAttachment {
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
    // Some programs would show a second invitation for a second text/calendar.
    contentType: isInvitation(attachment)
      ? "application/ics"
      : withCharset(wireContentType(attachment.contentType), attachment.bytes),
    content: Buffer.from(buffer, byteOffset, byteLength),
  };
}

/** Returns the alternative by which Gmail and Apple show an invitation (RFC 6047 §2.4). */
function invitationEntry({ contentType, bytes }: OutgoingAttachment) {
  return { contentType, contentTransferEncoding: "base64", content: Buffer.from(bytes) };
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
