import { newId } from "../../core/ids.ts";
import type { SendAttachment } from "../../core/send-item.ts";
import type { NewAttachment } from "../../store/attachments.ts";

/** An attachment as posted, ready to be stored: base64 read, type and disposition filled in. `now` in milliseconds. */
export function toAttachment(attachment: SendAttachment, now: number): NewAttachment & { bytes: Uint8Array } {
  const bytes = new Uint8Array(Buffer.from(attachment.content, "base64"));
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
