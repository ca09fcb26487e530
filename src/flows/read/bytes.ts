import { AppError } from "../../core/errors.ts";
import { type Attachment, getAttachment } from "../../store/attachments.ts";
import type { Db } from "../../store/client.ts";
import { getMessage, getRaw } from "../../store/messages.ts";
import type { Inspect } from "../readings.ts";
import { type RenderDeps, RenderingError, renderMessage } from "../send/render.ts";

/**
 * A message as RFC 5322 bytes: an inbound one as it was received, an outbound one as it goes (or went) on the wire.
 * Null where the project has none of that id, or its content is gone. `now` in milliseconds.
 */
export async function messageBytes(
  deps: RenderDeps,
  senderId: string,
  id: string,
  now: number,
): Promise<Uint8Array | null> {
  const kept = await getRaw(deps.db, senderId, id);
  if (kept !== null) return kept;
  const message = await getMessage(deps.db, senderId, id);
  if (message === null || message.direction === "inbound") return null;
  try {
    return (await renderMessage(deps, senderId, id, null, now)).raw;
  } catch (error) {
    if (error instanceof RenderingError) return null;
    throw error;
  }
}

/** An attachment with its bytes; null where the project's message has none of that id. */
export interface AttachmentBytes {
  attachment: Attachment;
  bytes: Uint8Array;
}

/**
 * Reads an attachment: an outbound one as it was posted, an inbound one out of the message as received.
 * @throws AppError 503 where too much mail waits to be read
 */
export async function attachmentBytes(
  { db, inspect }: { db: Db; inspect: Inspect },
  senderId: string,
  messageId: string,
  id: string,
): Promise<AttachmentBytes | null> {
  const found = await getAttachment(db, senderId, messageId, id);
  if (found === null) return null;
  const { ord, bytes, ...attachment } = found;
  if (bytes !== null) return { attachment, bytes };
  const raw = await getRaw(db, senderId, messageId);
  if (raw === null) return null;
  const part = await inspect({ kind: "attachment", raw, ord });
  if (part === null)
    throw new AppError("service_unavailable", "Too much mail is being read, try again later.");
  return part.bytes === null ? null : { attachment, bytes: part.bytes };
}
