import { newId } from "../../core/ids.ts";
import type { SendAttachment } from "../../core/send-item.ts";
import type { LoadedAttachment } from "../../store/attachments.ts";

/** An attachment as posted: base64 read, type and disposition filled in. `now` in milliseconds. */
export function toAttachment(attachment: SendAttachment, now: number): LoadedAttachment {
  const bytes = Buffer.from(attachment.content, "base64");
  return {
    id: newId("att", now),
    filename: attachment.filename,
    contentType:
      attachment.contentType ??
      (Bun.file(attachment.filename).type.split(";")[0] || "application/octet-stream"),
    disposition: attachment.disposition ?? (attachment.contentId === undefined ? "attachment" : "inline"),
    contentId: attachment.contentId ?? null,
    size: bytes.length,
    bytes,
  };
}
