import { type Static, Type } from "@sinclair/typebox";

/** Characters of a display name. */
export const MAX_NAME_CHARS = 320;
export const MAX_SUBJECT_CHARS = 998;
/** Addresses in `replyTo`. */
export const MAX_REPLY_TO = 50;

const Address = Type.Object(
  {
    email: Type.String({ description: "Email address.", examples: ["ada@example.com"] }),
    name: Type.Optional(Type.String({ description: "Display name.", maxLength: MAX_NAME_CHARS })),
  },
  { title: "SendAddress", description: "An address with an optional display name." },
);

const Attachment = Type.Object(
  {
    filename: Type.String({ minLength: 1, maxLength: 255 }),
    content: Type.String({ description: "The file's bytes in base64, padded, without line breaks." }),
    contentType: Type.Optional(
      Type.String({ maxLength: 255, description: "MIME type; derived from the filename when absent." }),
    ),
    contentId: Type.Optional(
      Type.String({ minLength: 1, maxLength: 255, description: "Content-ID, for `cid:` links in the html." }),
    ),
    disposition: Type.Optional(
      Type.Union([Type.Literal("attachment"), Type.Literal("inline")], {
        description: "Default `inline` with a contentId, else `attachment`.",
      }),
    ),
  },
  { title: "SendAttachment" },
);

/** A message to send, as the client posts it. Rules beyond the shape are in `send-rules`. */
export const SendItem = Type.Object(
  {
    from: Address,
    to: Type.Array(Address, {
      minItems: 1,
      description:
        "Recipients over `to`, `cc` and `bcc` have a limit of their own: 50 where the operator set no other.",
    }),
    cc: Type.Optional(Type.Array(Address)),
    bcc: Type.Optional(Type.Array(Address)),
    replyTo: Type.Optional(Type.Array(Address, { maxItems: MAX_REPLY_TO })),
    subject: Type.Optional(
      Type.String({ maxLength: MAX_SUBJECT_CHARS, description: "Required unless `templateId` is given." }),
    ),
    html: Type.Optional(Type.String()),
    text: Type.Optional(Type.String()),
    templateId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description:
          "Id or slug of a saved template, rendered while sending. A `subject`, `html` or `text` beside it that is not empty takes the place of the template's.",
      }),
    ),
    data: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: "Merge variables. Whole numbers beyond 2^53 lose digits: send them as texts.",
      }),
    ),
    headers: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description:
          "Custom headers: at most 50, values of at most 4096 bytes on one line. Those that the service writes are refused.",
      }),
    ),
    tags: Type.Optional(
      Type.Array(Type.Object({ name: Type.String(), value: Type.String() }), {
        description: "At most 20; name and value are 1 to 256 of `A-Z a-z 0-9 _ . -`.",
      }),
    ),
    attachments: Type.Optional(Type.Array(Attachment)),
    scheduledAt: Type.Optional(
      Type.String({ description: "ISO 8601 time to send at, with a zone; a past one sends now." }),
    ),
    tracking: Type.Optional(
      Type.Object(
        { opens: Type.Optional(Type.Boolean()), clicks: Type.Optional(Type.Boolean()) },
        { description: "Overrides the sender's switches." },
      ),
    ),
    unsubscribeLink: Type.Optional(
      Type.Boolean({
        description:
          "Adds one-click unsubscribe headers (RFC 8058), and the merge variable `unsubscribeUrl` to the template and to inline subject, html and text.",
      }),
    ),
  },
  { title: "SendItem", description: "A message to send." },
);
export type SendItem = Static<typeof SendItem>;
export type SendAttachment = Static<typeof Attachment>;
export type SendAddress = Static<typeof Address>;
