import { newId } from "../../core/ids.ts";
import type { SendAttachment } from "../../core/messages/send-item.ts";
import { REORDERING } from "../../mail/text/stored-text.ts";
import type { LoadedAttachment } from "../../store/messages/attachments.ts";
import type { ByteSource } from "../../store/contents/content-bytes.ts";

/** Converts an attachment as posted: decodes base64 and fills in type and disposition. `now` in milliseconds. */
export function toAttachment(attachment: SendAttachment, now: number): LoadedAttachment {
  const bytes = Buffer.from(attachment.content, "base64");
  return { ...shownAttachment(attachment, now), size: bytes.length, bytes };
}

/** Name of a file that is named by nothing but reordering characters. */
const UNNAMED = "attachment";

/**
 * Returns the fields of an attachment without its bytes. Characters that show a name in another order are left out of it,
 * as in mail that arrives. `now` in milliseconds.
 */
export function shownAttachment(
  { filename: given, contentType, disposition, contentId }: SendAttachment,
  now: number,
): Omit<LoadedAttachment, "size" | "bytes"> {
  const filename = given.replace(REORDERING, "") || UNNAMED;
  return {
    id: newId("att", now),
    filename,
    contentType: contentType ?? (Bun.file(filename).type.split(";")[0] || "application/octet-stream"),
    disposition: disposition ?? (contentId === undefined ? "attachment" : "inline"),
    contentId: contentId ?? null,
  };
}

/**
 * Decodes base64 in pieces, on demand. A large attachment decoded whole would need its size again in memory.
 * @param base64 without white space, padded (RFC 4648 §4)
 */
export function base64Pieces(base64: string): ByteSource {
  const pads = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  const length = (base64.length / 4) * 3 - pads;
  return {
    length,
    subarray(from, to) {
      const end = Math.min(to, length);
      // Four characters encode three bytes.
      const group = Math.floor(from / 3);
      const bytes = Buffer.from(base64.slice(group * 4, Math.ceil(end / 3) * 4), "base64");
      return bytes.subarray(from - group * 3, end - group * 3);
    },
  };
}
