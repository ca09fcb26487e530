import { createHash } from "node:crypto";
import type { Mailbox } from "../core/addresses.ts";
import { attachmentPart, isRelated, leaf, type OutgoingAttachment, type Part } from "./attachment-part.ts";
import { encodeText } from "./bodies.ts";
import {
  addressList,
  customValue,
  headerField,
  headerText,
  messageIds,
  needsSmtpUtf8,
  unstructured,
  withParameters,
} from "./header-fields.ts";
import { wireFault } from "./wire.ts";

/** Everything that is in a mail. Who gets it (the envelope, Bcc included) is not. */
export interface OutgoingMail {
  from: Mailbox;
  to: readonly Mailbox[];
  cc?: readonly Mailbox[] | undefined;
  replyTo?: readonly Mailbox[] | undefined;
  subject: string;
  text?: string | null | undefined;
  html?: string | null | undefined;
  /** The sender's own fields. A name that compose writes itself is refused. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Our own fields, e.g. In-Reply-To or List-Unsubscribe. They replace a custom field of the same name. */
  extraHeaders?: readonly (readonly [name: string, value: string])[] | undefined;
  attachments?: readonly OutgoingAttachment[] | undefined;
  /** With angle brackets. Boundaries derive from it. */
  messageId: string;
  /** Milliseconds since the epoch. */
  date: number;
}

export type { OutgoingAttachment };

export interface ComposedMail {
  raw: Buffer;
  /** An address in the header is beyond ASCII: only a peer with SMTPUTF8 may get this mail (RFC 6531 §3.2). */
  smtpUtf8: boolean;
}

/** Fields that compose writes itself, that relays write, or that tell of recipients who are not to be seen. */
const RESERVED =
  /^(?:from|to|cc|bcc|sender|reply-to|subject|date|message-id|return-path|received|content-.*|mime-version|dkim-signature|arc-.*|authentication-results|resent-bcc)$/i;
const MESSAGE_ID_FIELDS = /^(?:in-reply-to|references)$/i;

const CRLF = Buffer.from("\r\n");
/** Whether a header field of this name is not the sender's to set. */
export function isReservedHeader(name: string): boolean {
  return RESERVED.test(name);
}

/**
 * The bytes of a mail, the same for the same input, so that a retry is the same message. All lines end in CRLF and
 * have at most 998 octets; no bare CR, bare LF or NUL is in it, nor, unless `smtpUtf8`, an octet beyond ASCII.
 * Throws for a reserved or malformed field name and for an address that is none: the caller checks those.
 */
export function compose(mail: OutgoingMail): ComposedMail {
  const smtpUtf8 = [mail.from, ...mail.to, ...(mail.cc ?? []), ...(mail.replyTo ?? [])].some(({ email }) =>
    needsSmtpUtf8(email),
  );
  const chunks: Buffer[] = [Buffer.from(`${messageFields(mail)}MIME-Version: 1.0\r\n`, "utf8")];
  const content = contentOf(mail);
  writePart(content, chunks);
  if (Buffer.isBuffer(content.body) && !endsLine(content.body)) chunks.push(CRLF);
  const raw = Buffer.concat(chunks);
  const fault = wireFault(raw, smtpUtf8);
  if (fault !== null) throw new Error(`composed mail has ${fault}`);
  return { raw, smtpUtf8 };
}

function messageFields(mail: OutgoingMail): string {
  const { from, to, cc = [], replyTo = [] } = mail;
  return [
    headerField("From", addressList([from])),
    // RFC 5322 §3.6.3 lets a mail be without To; an empty group tells that it has hidden recipients only.
    headerField("To", to.length === 0 ? "undisclosed-recipients:;" : addressList(to)),
    cc.length === 0 ? "" : headerField("Cc", addressList(cc)),
    replyTo.length === 0 ? "" : headerField("Reply-To", addressList(replyTo)),
    headerField("Subject", unstructured(mail.subject)),
    headerField("Message-ID", messageIds(mail.messageId)),
    headerField("Date", new Date(mail.date).toUTCString().replace("GMT", "+0000")),
    ...furtherFields(mail),
  ].join("");
}

function* furtherFields({ headers = {}, extraHeaders = [] }: OutgoingMail): Generator<string> {
  const own = new Set(extraHeaders.map(([name]) => name.toLowerCase()));
  const custom = Object.entries(headers).filter(([name]) => !own.has(name.toLowerCase()));
  for (const [name, value] of [...extraHeaders, ...custom]) {
    if (isReservedHeader(name))
      throw new Error(`the header field ${headerText(name)} is not the sender's to set`);
    const encoded = MESSAGE_ID_FIELDS.test(name) ? messageIds(value) : customValue(value);
    if (encoded !== "") yield headerField(name, encoded);
  }
}

/** The tree of parts: mixed(alternative(text, related(html, images)), attachments), without what has one part only. */
function contentOf(mail: OutgoingMail): Part {
  const boundaries = boundarySequence(mail.messageId);
  const attachments = mail.attachments ?? [];
  const hasHtml = mail.html !== null && mail.html !== undefined && mail.html !== "";
  const related = hasHtml ? attachments.filter(isRelated) : [];
  const attached = attachments.filter((attachment) => !related.includes(attachment));
  const bodies: Part[] = [];
  const text = mail.text ?? "";
  if (text !== "" || !hasHtml) bodies.push(textPart("plain", text, boundaries.prefix));
  if (hasHtml) {
    const html = textPart("html", mail.html ?? "", boundaries.prefix);
    bodies.push(multipart("related", [html, ...related.map(attachmentPart)], boundaries));
  }
  const body = multipart("alternative", bodies, boundaries);
  return multipart("mixed", [body, ...attached.map(attachmentPart)], boundaries);
}

interface Boundaries {
  prefix: string;
  next(): string;
}

/** Boundaries that begin with "=_" never occur in quoted-printable or base64 (RFC 2045 §6.7); `encodeText` avoids them in 7bit. */
function boundarySequence(messageId: string): Boundaries {
  const prefix = `=_${createHash("sha256").update(messageId).digest("hex").slice(0, 24)}`;
  let count = 0;
  return { prefix, next: () => `${prefix}.${++count}` };
}

function multipart(subtype: string, parts: Part[], boundaries: Boundaries): Part {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  const boundary = boundaries.next();
  const fields = headerField("Content-Type", withParameters(`multipart/${subtype}`, { boundary }));
  return { fields, body: parts, boundary };
}

function textPart(subtype: "plain" | "html", text: string, avoid: string): Part {
  return leaf(`text/${subtype}; charset=utf-8`, encodeText(text, avoid));
}

function writePart(part: Part, chunks: Buffer[]): void {
  chunks.push(Buffer.from(`${part.fields}\r\n`, "latin1"));
  if (Buffer.isBuffer(part.body)) {
    chunks.push(part.body);
    return;
  }
  for (const inner of part.body) {
    chunks.push(Buffer.from(`--${part.boundary}\r\n`));
    writePart(inner, chunks);
    // RFC 2046 §5.1.1: the line end before a boundary belongs to the boundary, not to the part.
    chunks.push(CRLF);
  }
  chunks.push(Buffer.from(`--${part.boundary}--\r\n`));
}

function endsLine(bytes: Buffer): boolean {
  return bytes.length > 0 && bytes[bytes.length - 1] === 0x0a;
}
