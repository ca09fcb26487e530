import { AppError } from "../../core/errors.ts";
import { type Attachment, getAttachment } from "../../store/messages/attachments.ts";
import {
  type Contents,
  contentBytes,
  contentPieces,
  octetsHeld,
  type StoredContent,
} from "../../store/contents/content-read.ts";
import { isContentRemoved } from "../../store/messages/content-release.ts";
import { reservedBudget } from "../../store/contents/memory-budget.ts";
import { getRaw, type StoredRaw } from "../../store/messages/message-content.ts";
import { getMessage } from "../../store/messages/messages.ts";
import { RenderingError } from "../mime/make-mail.ts";
import { renderMessage } from "../deliver/render.ts";
import { readLarge, tooManyReads } from "../../store/contents/large-reads.ts";
import type { Making } from "../mime/making.ts";

export interface Bytes {
  /** Bytes in all. */
  size: number;
  /** Bytes in memory at once, at most. */
  held: number;
  /** All bytes in order. Large content is read piece by piece, on demand. */
  pieces: AsyncIterable<Uint8Array>;
}

/**
 * Reads a message as RFC 5322 bytes: an inbound one as it was received, an outbound one as it is sent. Returns null if
 * the project has none of that id, or its content is gone.
 * @throws AppError 404 with the reason if it has passed its retention or cannot be rendered; 503 if too many reads wait
 */
export async function messageBytes(deps: Making, senderId: string, id: string): Promise<Bytes | null> {
  const kept = await getRaw(deps.db, senderId, id);
  if (kept !== null && !kept.submitted) return keptBytes(deps, kept);
  await refuseLetGo(deps, senderId, id);
  const message = await getMessage(deps.db, senderId, id);
  if (message === null || message.direction === "inbound") return null;
  try {
    const rendering = () => renderMessage(deps, senderId, id, null);
    return oneBytes((await readLarge(deps.memory.largeReads, senderId, message.size, rendering)).raw);
  } catch (error) {
    if (!(error instanceof RenderingError)) throw error;
    const message = `This message has no bytes, since it cannot be rendered: ${error.message}`;
    throw new AppError("not_found", message, { code: "rendering_failure" });
  }
}

/** @throws AppError 404 with the reason if the message has passed its retention */
async function refuseLetGo({ db }: Contents, senderId: string, id: string): Promise<void> {
  if (await isContentRemoved(db, senderId, id))
    throw new AppError("not_found", "The content of this message has passed its retention time and is gone.");
}

function keptBytes(deps: Contents, { trace, content }: StoredRaw): Bytes {
  const before = Buffer.from(trace ?? "");
  const size = before.length + content.size;
  return { size, held: before.length + octetsHeld(content), pieces: both(before, piecesOf(deps, content)) };
}

async function* both(before: Uint8Array, after: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (before.length > 0) yield before;
  yield* after;
}

function oneBytes(bytes: Uint8Array): Bytes {
  return { size: bytes.length, held: bytes.length, pieces: both(bytes, none()) };
}

async function* none(): AsyncGenerator<Uint8Array> {}

export interface AttachmentBytes {
  attachment: Attachment;
  bytes: Bytes;
}

/**
 * Reads an attachment: an outbound one as it was posted, an inbound one from the message as received.
 * @returns null if the project's message has none of that id, or it is gone
 * @throws AppError 503 if too many reads wait
 */
export async function attachmentBytes(
  deps: Making,
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

/** Returns the bytes of an inbound message's attachment by its number, or null if there is none. */
async function partOf(
  deps: Making,
  senderId: string,
  content: StoredContent,
  ord: number,
): Promise<Uint8Array | null> {
  const part = await readLarge(deps.memory.largeReads, senderId, content.size, async () =>
    deps.inspect({ kind: "attachment", raw: await contentBytes(deps, content, reservedBudget()), ord }),
  );
  if (part === null) throw tooManyReads();
  return part.bytes;
}

function ownBytes(deps: Contents, content: StoredContent): Bytes {
  return { size: content.size, held: octetsHeld(content), pieces: piecesOf(deps, content) };
}

/**
 * Returns the bytes of a content in pieces. The response is admitted for the bytes that it holds at a time.
 */
function piecesOf(deps: Contents, content: StoredContent): AsyncIterable<Uint8Array> {
  return contentPieces(deps, content, reservedBudget());
}
