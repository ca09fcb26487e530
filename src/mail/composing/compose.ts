import { createHash } from "node:crypto";
import MailComposer from "nodemailer/lib/mail-composer";
import type { Mailbox } from "../../core/addresses.ts";
import { attachmentEntry, type OutgoingAttachment } from "./attachment-entry.ts";
import {
  customValue,
  fieldValue,
  headerField,
  headerText,
  messageIds,
  nodemailerMailbox,
  needsSmtpUtf8,
  unstructured,
} from "./header-fields.ts";
import { writeTree } from "./mime-tree.ts";
import { textEntry } from "./text-entry.ts";
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
  const boundary = boundaryOf(mail.messageId);
  const tree = new MailComposer({
    disableFileAccess: true,
    disableUrlAccess: true,
    baseBoundary: boundary,
    headers: fieldsOf(mail),
    text: textEntry(mail.text, boundary),
    html: textEntry(mail.html, boundary),
    attachments: (mail.attachments ?? []).map((attachment) => attachmentEntry(attachment, hasHtml(mail))),
  }).compile();
  // The composer would write a field for each address, and each of these may stand once (RFC 5322 §3.6).
  for (const [name, mailboxes] of addressLists(mail)) tree.setHeader(name, mailboxes.map(nodemailerMailbox));
  const raw = writeTree(tree, [...furtherFields(mail)]);
  const fault = wireFault(raw, smtpUtf8);
  if (fault !== null) throw new Error(`composed mail has ${fault}`);
  return { raw, smtpUtf8 };
}

function hasHtml({ html }: OutgoingMail): boolean {
  return html !== null && html !== undefined && html !== "";
}

/** Boundaries that hold "=_" never occur in quoted-printable or base64 (RFC 2045 §6.7); `textEntry` avoids them in 7bit. */
function boundaryOf(messageId: string): string {
  return `=_${createHash("sha256").update(messageId).digest("hex").slice(0, 24)}`;
}

type Field = { key: string; value: string | Date | object };

/** The fields that hold several addresses, as far as there are any. */
function addressLists({
  to,
  cc = [],
  replyTo = [],
}: OutgoingMail): [name: string, mailboxes: readonly Mailbox[]][] {
  const lists: [string, readonly Mailbox[]][] = [
    ["To", to],
    ["Cc", cc],
    ["Reply-To", replyTo],
  ];
  return lists.filter(([, mailboxes]) => mailboxes.length > 0);
}

/** The fields of the mail itself, in their order; those of MIME are the composer's. */
function fieldsOf(mail: OutgoingMail): Field[] {
  const lists = addressLists(mail);
  return [
    { key: "From", value: nodemailerMailbox(mail.from) },
    // RFC 5322 §3.6.3 lets a mail be without To; an empty group tells that it has hidden recipients only.
    ...(mail.to.length === 0 ? [{ key: "To", value: "undisclosed-recipients:;" }] : []),
    // Their places; `compose` puts all their addresses there.
    ...lists.map(([key]) => ({ key, value: "" })),
    { key: "Subject", value: fieldValue("Subject", unstructured(mail.subject)) },
    { key: "Message-ID", value: fieldValue("Message-ID", messageIds(mail.messageId)) },
    { key: "Date", value: new Date(mail.date) },
  ];
}

/** Our own further fields and the sender's, written by us: the composer would change how their names are spelled. */
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
