import { AppError } from "../../core/errors.ts";
import { type Attachment, getAttachment } from "../../store/attachments.ts";
import {
  type ContentDeps,
  contentBytes,
  contentPieces,
  heldOf,
  type StoredContent,
} from "../../store/contents/content-read.ts";
import { isLetGo } from "../../store/contents/content-release.ts";
import { getRaw, type KeptRaw } from "../../store/contents/message-content.ts";
import { getMessage } from "../../store/messages.ts";
import type { Inspect } from "../readings.ts";
import { RenderingError } from "../send/make-mail.ts";
import { type RenderDeps, type RenderMemory, renderMessage } from "../send/render.ts";
import { tooMuchMail, withRoomFor } from "./large-mails.ts";

/** Bytes to be handed out. */
export interface Bytes {
  /** Octets of them all. */
  size: number;
  /** Octets of them in memory at a time, at most. */
  held: number;
  /** All of them in order; large ones piece by piece, each read when it is asked for. */
  pieces: AsyncIterable<Uint8Array>;
}

/**
 * A message as RFC 5322 bytes: an inbound one as it was received, an outbound one as it goes (or went) on the wire.
 * Null where the project has none of that id, or its content is gone.
 * @throws AppError 404 where it has passed its retention, or cannot be rendered, with the reason; 503 where too much mail
 *   waits to be read
 */
export async function messageBytes(deps: RenderDeps, senderId: string, id: string): Promise<Bytes | null> {
  const kept = await getRaw(deps.db, senderId, id);
  if (kept !== null) return keptBytes(deps, kept);
  await refuseLetGo(deps, senderId, id);
  const message = await getMessage(deps.db, senderId, id);
  if (message === null || message.direction === "inbound") return null;
  try {
    const rendering = () => renderMessage(deps, senderId, id, null);
    return oneBytes((await withRoomFor(deps.memory.largeMails, senderId, message.size, rendering)).raw);
  } catch (error) {
    if (!(error instanceof RenderingError)) throw error;
    const message = `This message has no bytes, since it cannot be rendered: ${error.message}`;
    throw new AppError("not_found", message, { code: "rendering_failure" });
  }
}

/** @throws AppError 404 with the reason, where the message has lost its content to its age */
async function refuseLetGo({ db }: ContentDeps, senderId: string, id: string): Promise<void> {
  if (await isLetGo(db, senderId, id))
    throw new AppError("not_found", "The content of this message has passed its retention time and is gone.");
}

function keptBytes(deps: ContentDeps, { trace, content }: KeptRaw): Bytes {
  const before = Buffer.from(trace ?? "");
  const size = before.length + content.size;
  return { size, held: before.length + heldOf(content), pieces: both(before, contentPieces(deps, content)) };
}

async function* both(before: Uint8Array, after: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (before.length > 0) yield before;
  yield* after;
}

function oneBytes(bytes: Uint8Array): Bytes {
  return { size: bytes.length, held: bytes.length, pieces: both(bytes, none()) };
}

async function* none(): AsyncGenerator<Uint8Array> {}

interface PartDeps extends ContentDeps {
  inspect: Inspect;
  memory: Pick<RenderMemory, "largeMails">;
}

/** An attachment with its bytes. */
export interface AttachmentBytes {
  attachment: Attachment;
  bytes: Bytes;
}

/**
 * Reads an attachment: an outbound one as it was posted, an inbound one out of the message as received.
 * @returns null where the project's message has none of that id, or it is gone
 * @throws AppError 503 where too much mail waits to be read
 */
export async function attachmentBytes(
  deps: PartDeps,
  senderId: string,
  messageId: string,
  id: string,
): Promise<AttachmentBytes | null> {
  const found = await getAttachment(deps.db, senderId, messageId, id);
  if (found === null) return null;
  const { ord, content, ...attachment } = found;
  if (content !== null) return { attachment, bytes: ownBytes(deps, content) };
  const raw = await getRaw(deps.db, senderId, messageId);
  if (raw === null) await refuseLetGo(deps, senderId, messageId);
  if (raw === null) return null;
  const bytes = await partOf(deps, senderId, raw.content, ord);
  return bytes === null ? null : { attachment, bytes: oneBytes(bytes) };
}

/** The bytes of the attachment at that place of a mail as it came; null where it has none there. */
async function partOf(
  deps: PartDeps,
  senderId: string,
  content: StoredContent,
  ord: number,
): Promise<Uint8Array | null> {
  const part = await withRoomFor(deps.memory.largeMails, senderId, content.size, async () =>
    deps.inspect({ kind: "attachment", raw: await contentBytes(deps, content), ord }),
  );
  if (part === null) throw tooMuchMail();
  return part.bytes;
}

function ownBytes(deps: ContentDeps, content: StoredContent): Bytes {
  return { size: content.size, held: heldOf(content), pieces: contentPieces(deps, content) };
}
