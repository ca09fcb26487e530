import { Kind, type Static, Type } from "@sinclair/typebox";
import { invalid, validationError } from "../../core/errors.ts";
import { theirName } from "./form/field-names.ts";
import { decisiveFieldIssues } from "../../core/messages/decisive-fields.ts";
import { MAX_SUBJECT_CHARS } from "../../core/messages/send-item.ts";
import { MAX_CUSTOM_HEADERS, MAX_HEADER_VALUE_BYTES } from "../../core/messages/send-rules.ts";
import { BYTE_LIST } from "../../core/validation.ts";
import { MAX_LIST_NUMBERS } from "../json/scanner.ts";
import { AddressText, Given, Id, Part, Values } from "./form/given.ts";
import { MAX_WORDS_CHARS, timeOf } from "./scheduled-words.ts";
import { renamed, withoutNulls } from "./form/translate.ts";

/** Maximum number of recipients of a message, as the largest setting allows. */
const MAX_ADDRESSES = 1000;
const MAX_TAGS = 20;
const MAX_TAG_CHARS = 256;
/** Maximum number of attachments of a message. The setting's own limit comes after it. */
const MAX_FILES = 1000;
/** Maximum characters of a file's base64: as many as a body may have by default. */
const MAX_CONTENT_CHARS = 40 * 1024 * 1024;
const MAX_FILE_NAME_CHARS = 255;

const Addresses = Type.Union([AddressText, Type.Array(AddressText, { maxItems: MAX_ADDRESSES })], {
  expected: "an address or a list of addresses",
});

const Bytes = Type.Unsafe<number[]>({ [Kind]: BYTE_LIST, maxItems: MAX_LIST_NUMBERS });
/** The bytes of a file. The packages for Go, Rust and Python send a number for each, and older ones for Node a Buffer. */
const Content = Type.Union(
  [
    Type.String({ maxLength: MAX_CONTENT_CHARS }),
    Bytes,
    Type.Object({ type: Type.Literal("Buffer"), data: Bytes }),
  ],
  { expected: "base64 or a list of bytes as numbers from 0 to 255" },
);

const File = Type.Object({
  filename: Given(Type.String({ maxLength: MAX_FILE_NAME_CHARS })),
  content: Given(Content),
  content_type: Given(Type.String({ maxLength: MAX_FILE_NAME_CHARS })),
  content_id: Given(Type.String({ maxLength: MAX_FILE_NAME_CHARS })),
  /** The former name of `content_id`, which the packages still have. */
  inline_content_id: Given(Type.String({ maxLength: MAX_FILE_NAME_CHARS })),
  path: Given(Type.String({ maxLength: MAX_CONTENT_CHARS })),
});

export const ScheduledAt = Type.String({ maxLength: MAX_WORDS_CHARS });

/** The body of a send. */
export const SendBody = Type.Object({
  from: Given(AddressText),
  to: Given(Addresses),
  cc: Given(Addresses),
  bcc: Given(Addresses),
  reply_to: Given(Addresses),
  subject: Given(Type.String({ maxLength: MAX_SUBJECT_CHARS })),
  html: Given(Part),
  text: Given(Part),
  headers: Given(
    Type.Record(Type.String(), Type.String({ maxLength: MAX_HEADER_VALUE_BYTES }), {
      maxProperties: MAX_CUSTOM_HEADERS,
    }),
  ),
  tags: Given(
    Type.Array(
      Type.Object({
        name: Type.String({ maxLength: MAX_TAG_CHARS }),
        value: Type.String({ maxLength: MAX_TAG_CHARS }),
      }),
      { maxItems: MAX_TAGS },
    ),
  ),
  attachments: Given(Type.Array(File, { maxItems: MAX_FILES })),
  scheduled_at: Given(ScheduledAt),
  template: Given(Type.Object({ id: Given(Id), variables: Given(Values) })),
  topic_id: Given(Id),
});
export type SendBody = Static<typeof SendBody>;

const SEND_NAMES = {
  from: "from",
  to: "to",
  cc: "cc",
  bcc: "bcc",
  reply_to: "replyTo",
  subject: "subject",
  html: "html",
  text: "text",
  headers: "headers",
  tags: "tags",
  topic_id: "topicId",
} as const;

const FILE_NAMES = {
  filename: "filename",
  content: "content",
  content_type: "contentType",
  content_id: "contentId",
} as const;

/** Name of an attachment that has none. */
const UNNAMED = "attachment";

/** The fields of a send. */
const FIELDS: ReadonlySet<string> = new Set(Object.keys(SendBody.properties));
/**
 * Returns a send item for the body of a send.
 * @param now milliseconds
 * @throws AppError 422
 */
export async function sendItemOf(body: SendBody, now: number): Promise<Record<string, unknown>> {
  const misspelt = decisiveFieldIssues(body, FIELDS, theirName);
  if (misspelt.length > 0) throw validationError(misspelt);
  const fields = withoutNulls(body);
  const { scheduled_at: scheduledAt, template, attachments } = fields;
  const { id: templateId, variables: data } = withoutNulls(template ?? {});
  return {
    ...renamed(fields, SEND_NAMES),
    ...renamed({ templateId, data }, { templateId: "templateId", data: "data" }),
    ...(attachments === undefined ? {} : { attachments: attachments.map(attachmentOf) }),
    ...(scheduledAt === undefined ? {} : { scheduledAt: await timeOf(scheduledAt, now) }),
  };
}

function attachmentOf(file: Static<typeof File>, index: number): Record<string, unknown> {
  const { content, inline_content_id: inlineId, ...fields } = withoutNulls(file);
  if (fields.path !== undefined)
    throw invalid(
      `attachments[${index}].path`,
      "is not supported, because the service downloads nothing for a client. Send the file's bytes as content.",
      "invalid_attachment",
    );
  return {
    filename: UNNAMED,
    ...(inlineId === undefined ? {} : { contentId: inlineId }),
    ...renamed(fields, FILE_NAMES),
    ...(content === undefined ? {} : { content: base64Of(content) }),
  };
}

/** Returns the padded base64 of a file. Mail tools break its lines (RFC 2045 §6.8). */
function base64Of(content: Static<typeof Content>): string {
  if (typeof content !== "string")
    return Buffer.from(Array.isArray(content) ? content : content.data).toString("base64");
  return /[\r\n]/.test(content) ? content.replaceAll(/[\r\n]+/g, "") : content;
}
