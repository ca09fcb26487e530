import { base64Lines, type EncodedBody, normalizeLineEnds } from "./bodies.ts";
import { headerField, headerText, withParameters } from "./header-fields.ts";
import { wireFault } from "./wire.ts";

export interface OutgoingAttachment {
  filename: string;
  contentType: string;
  bytes: Uint8Array;
  /** Without angle brackets; they are taken off where given. */
  contentId?: string | null | undefined;
  disposition: "attachment" | "inline";
}

/** A part ready to be written: its fields, and its bytes or its parts. */
export interface Part {
  fields: string;
  body: Buffer | readonly Part[];
  boundary: string;
}

const TOKEN = "[A-Za-z0-9!#$&^_.+-]{1,127}";
const CONTENT_TYPE = new RegExp(
  `^${TOKEN}/${TOKEN}(?: *; *[A-Za-z0-9-]+=(?:${TOKEN}|"[ !#-\\[\\]-~]{0,127}"))*$`,
);

/** A part that has no parts. */
export function leaf(contentType: string, body: EncodedBody, furtherFields = ""): Part {
  const fields =
    headerField("Content-Type", contentType) +
    furtherFields +
    headerField("Content-Transfer-Encoding", body.encoding);
  return { fields, body: body.bytes, boundary: "" };
}

/** An inline part with a Content-ID is what the html shows; every other one is an attachment to the reader. */
export function isRelated(attachment: OutgoingAttachment): boolean {
  return attachment.disposition === "inline" && contentId(attachment) !== "";
}

/** The part of an attachment. */
export function attachmentPart(attachment: OutgoingAttachment): Part {
  const filename = headerText(attachment.filename);
  const disposition = attachment.disposition === "inline" ? "inline" : "attachment";
  const id = contentId(attachment);
  const fields =
    headerField("Content-Disposition", withParameters(disposition, filename === "" ? {} : { filename })) +
    (id === "" ? "" : headerField("Content-ID", `<${id}>`));
  const asMessage = messagePart(attachment);
  if (asMessage !== null) return leaf("message/rfc822", asMessage, fields);
  return leaf(
    wireContentType(attachment.contentType),
    { encoding: "base64", bytes: base64Lines(attachment.bytes) },
    fields,
  );
}

function contentId(attachment: OutgoingAttachment): string {
  return (attachment.contentId ?? "").replace(/[^\x21-\x7e]|[<>]/g, "").slice(0, 512);
}

/** RFC 2046 §5.2.1: a message/rfc822 part is never base64. One that does not fit 7bit goes as plain bytes instead. */
function messagePart(attachment: OutgoingAttachment): EncodedBody | null {
  if (!/^message\/rfc822\b/i.test(attachment.contentType)) return null;
  const text = normalizeLineEnds(Buffer.from(attachment.bytes).toString("latin1"));
  const bytes = Buffer.from(text.endsWith("\r\n") ? text : `${text}\r\n`, "latin1");
  return wireFault(bytes, false) === null ? { encoding: "7bit", bytes } : null;
}

/** The content type given where it is one for a single part in base64, else the type of unknown bytes. */
function wireContentType(given: string): string {
  const type = headerText(given);
  return CONTENT_TYPE.test(type) && !/^(?:multipart|message)\//i.test(type)
    ? type
    : "application/octet-stream";
}
