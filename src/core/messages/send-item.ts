import { type Mailbox, spellingKey, splitAddress } from "../addresses.ts";
import { type Static, Type } from "@sinclair/typebox";
import { OpenTrackingSchema } from "./tracking.ts";
import { Calendar, invitationFile } from "./calendar.ts";
import { Address, AddressList, mailboxesOf, mailboxOf } from "./address-input.ts";

export const MAX_SUBJECT_CHARS = 998;
/** Maximum number of addresses in `replyTo`. */
export const MAX_REPLY_TO = 50;

const Attachment = Type.Object(
  {
    filename: Type.String({ minLength: 1, maxLength: 255, examples: ["hello.txt"] }),
    content: Type.String({
      description: "The file's bytes in padded base64, without line breaks.",
      examples: ["SGVsbG8="],
    }),
    contentType: Type.Optional(
      Type.String({
        maxLength: 255,
        description: "MIME type. If absent, it is derived from the filename.",
        examples: ["text/plain"],
      }),
    ),
    contentId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        description: "Content-ID, for `cid:` links in the html.",
        examples: ["logo"],
      }),
    ),
    disposition: Type.Optional(
      Type.Union([Type.Literal("attachment"), Type.Literal("inline")], {
        description: "If absent: `inline` with a `contentId`, else `attachment`.",
      }),
    ),
  },
  { title: "SendAttachment" },
);

/** Maximum time for which a send can be undone, seconds. */
export const MAX_UNDO_SECONDS = 60;
export const UndoSeconds = Type.Integer({
  minimum: 0,
  maximum: MAX_UNDO_SECONDS,
  examples: [10],
  description:
    "Sends after so many seconds. Until then the message is `accepted`, and `POST /v1/emails/{id}/cancel` takes it back.",
});

/** A message to send, as the client posts it. Rules beyond the shape are in `send-rules`. */
export const SendItem = Type.Object(
  {
    from: Address,
    to: AddressList({
      minItems: 1,
      description:
        "`to`, `cc` and `bcc` have at most 50 recipients together, unless the operator set another limit.",
    }),
    cc: Type.Optional(AddressList()),
    bcc: Type.Optional(AddressList()),
    replyTo: Type.Optional(AddressList({ maxItems: MAX_REPLY_TO })),
    subject: Type.Optional(
      Type.String({
        maxLength: MAX_SUBJECT_CHARS,
        description: "Required unless `templateId` is given.",
        examples: ["Hello"],
      }),
    ),
    html: Type.Optional(Type.String({ examples: ["<p>Hi Ana</p>"] })),
    text: Type.Optional(Type.String({ examples: ["Hi Ana"] })),
    templateId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description:
          "Id or slug of a saved template, rendered while sending. A `subject`, `html` or `text` that is given and not empty replaces the template's.",
        examples: ["order-confirmation"],
      }),
    ),
    data: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description:
          "Values for the template's placeholders. Send whole numbers beyond 2^53 as strings, because they lose digits.",
        examples: [{ name: "Ana" }],
      }),
    ),
    headers: Type.Optional(
      Type.Record(Type.String(), Type.String({ examples: ["42"] }), {
        description:
          "Custom headers: at most 50, each with a value of at most 4096 bytes on one line. Headers that the service writes itself are refused.",
        examples: [{ "X-Order": "42" }],
      }),
    ),
    tags: Type.Optional(
      Type.Array(
        Type.Object({
          name: Type.String({ examples: ["campaign"] }),
          value: Type.String({ examples: ["spring"] }),
        }),
        { description: "At most 20. Name and value have 1 to 256 characters of `A-Z a-z 0-9 _ . -`." },
      ),
    ),
    attachments: Type.Optional(Type.Array(Attachment)),
    calendar: Type.Optional(Calendar),
    scheduledAt: Type.Optional(
      Type.String({
        description: "ISO 8601 time with a zone at which to send. A past time sends now.",
        expected: "an ISO 8601 date-time with a zone",
        examples: ["2026-01-31T09:30:00Z"],
      }),
    ),
    undoSeconds: Type.Optional(UndoSeconds),
    tracking: Type.Optional(
      Type.Object(
        { opens: Type.Optional(OpenTrackingSchema), clicks: Type.Optional(Type.Boolean()) },
        { description: "Overrides the project's tracking settings." },
      ),
    ),
    stream: Type.Optional(
      Type.Union([Type.Literal("transactional"), Type.Literal("bulk")], {
        description:
          "`bulk` mail leaves after the rest: it has one turn in five, together with retries. If absent: `bulk` with `unsubscribeLink` or a List-Unsubscribe header, else `transactional`.",
        examples: ["transactional"],
      }),
    ),
    keepContent: Type.Optional(
      Type.Boolean({
        description:
          "If false, the body, files and template data go as soon as every recipient is final. The record and its events stay.",
      }),
    ),
    topicId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description:
          "Id of a topic. The message has `unsubscribeLink`, its link leaves the topic, and recipients who do not get the topic when it leaves are `rejected`.",
        examples: ["top_01hzy8"],
      }),
    ),
    unsubscribeLink: Type.Optional(
      Type.Boolean({
        description:
          "Adds one-click unsubscribe headers (RFC 8058). Also defines `unsubscribeUrl` for placeholders in the template, subject, html and text.",
      }),
    ),
  },
  {
    title: "SendItem",
    description: "A message to send.",
    examples: [
      {
        from: { email: "ana@example.com" },
        to: [{ email: "ben@example.com" }],
        subject: "Hello",
        text: "Hi Ben",
      },
    ],
  },
);
export type SendItem = Static<typeof SendItem>;
export type SendAttachment = Static<typeof Attachment>;

type AddressField = "from" | "to" | "cc" | "bcc" | "replyTo";
/** A send item whose addresses have been read: objects, and lists of them. */
export interface ReadItem extends Omit<SendItem, AddressField> {
  from: Mailbox;
  to: Mailbox[];
  cc?: Mailbox[];
  bcc?: Mailbox[];
  replyTo?: Mailbox[];
}

/** Returns the item with its addresses read, and its invitation as its last file. It must have no issues. */
export function readItem(item: SendItem): ReadItem {
  const { from, to, cc, bcc, replyTo, ...rest } = item;
  return {
    ...rest,
    from: mailboxOf(from),
    to: mailboxesOf(to),
    ...(cc === undefined ? {} : { cc: mailboxesOf(cc) }),
    ...(bcc === undefined ? {} : { bcc: mailboxesOf(bcc) }),
    ...(replyTo === undefined ? {} : { replyTo: mailboxesOf(replyTo) }),
    ...(item.topicId === undefined ? {} : { unsubscribeLink: true }),
    ...(item.calendar === undefined
      ? {}
      : { attachments: [...(item.attachments ?? []), invitationFile(item.calendar)] }),
  };
}

/** Mail that one recipient expects, or mail to many. */
export type Stream = "transactional" | "bulk";

/** Returns the stream of a send: as it says, else `bulk` if recipients can unsubscribe from it. */
export function streamOf({
  stream,
  unsubscribeLink,
  headers = {},
}: Pick<ReadItem, "stream" | "unsubscribeLink" | "headers">): Stream {
  if (stream !== undefined) return stream;
  const isList = Object.keys(headers).some((name) => name.toLowerCase() === "list-unsubscribe");
  return unsubscribeLink === true || isList ? "bulk" : "transactional";
}

/** One recipient of a send. If an address is given several times, the first kind counts. */
export interface Addressee {
  email: string;
  /** The form of the address that lists compare. */
  key: string;
  domain: string;
  kind: "to" | "cc" | "bcc";
}

/** Returns the recipients of a send without duplicates. Domains are in A-labels. */
export function addresseesOf(item: Pick<ReadItem, "to" | "cc" | "bcc">): Addressee[] {
  const seen = new Map<string, Addressee>();
  for (const kind of ["to", "cc", "bcc"] as const) {
    for (const address of item[kind] ?? []) {
      const split = splitAddress(address.email);
      const email = split === null ? address.email : `${split.local}@${split.domain}`;
      const key = spellingKey(email);
      if (!seen.has(key)) seen.set(key, { email, key, domain: split?.domain ?? "", kind });
    }
  }
  return [...seen.values()];
}
