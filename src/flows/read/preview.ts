import { AppError } from "../../core/errors.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import {
  contentIdsIn,
  MAX_INLINE_CHARS,
  type Previewed,
  shownPart,
} from "../../core/messages/preview-page.ts";
import type { Attachment } from "../../store/messages/attachments.ts";
import { attachmentBytes } from "./bytes.ts";
import { readRecord } from "./record.ts";
import type { Making } from "../mime/making.ts";

/** Maximum number of a message's images that a preview shows. Each may need the whole message to be read. */
export const MAX_PREVIEW_IMAGES = 16;

/** Maximum octets of images that are read. As base64 they have a third more. */
export const MAX_IMAGE_OCTETS = (MAX_INLINE_CHARS / 4) * 3;

/** Formats that only show a picture. SVG can do more. */
const PICTURE = /^image\/(?:png|jpeg|gif|webp|avif|bmp)$/i;

/**
 * Reads what a preview of a message shows. Returns null if the project has no such message.
 * @param expect is called with the bytes before they are read; throws if there is no room
 * @throws AppError 404 if the message has no html; 503 if too many reads wait
 */
export async function readPreview(
  deps: Making,
  senderId: string,
  id: string,
  expect: (octets: number) => void,
): Promise<Previewed | null> {
  const record = await readRecord(deps, senderId, id, { expect, mostEvents: 0 });
  if (record === null) return null;
  const whole = record.content.html;
  if (whole === null) throw new AppError("not_found", "This message has no html.");
  const html = shownPart(whole);
  const shown = picturesOf(record.attachments, contentIdsIn(html));
  expect(shown.reduce((sum, { size }) => sum + size * 2, 0));
  const images = new Map<string, string>();
  for (const picture of shown)
    images.set(picture.contentId ?? "", await dataUrl(deps, senderId, id, picture));
  // Both halves of the work on a large page take a while, so other requests are served in between.
  await yieldToEventLoop();
  return { html, images, cut: html.length < whole.length };
}

/** Returns the pictures with those ids, within the limits. */
function picturesOf(attachments: readonly Attachment[], ids: readonly string[]): Attachment[] {
  const wanted = new Set(ids);
  let left = MAX_IMAGE_OCTETS;
  return attachments
    .filter(({ contentId, contentType }) => wanted.delete(contentId ?? "") && PICTURE.test(contentType))
    .filter(({ size }) => {
      const fits = size <= left;
      if (fits) left -= size;
      return fits;
    })
    .slice(0, MAX_PREVIEW_IMAGES);
}

async function dataUrl(deps: Making, senderId: string, id: string, picture: Attachment): Promise<string> {
  const found = await attachmentBytes(deps, senderId, id, picture.id);
  const pieces = found === null ? [] : await Array.fromAsync(found.bytes.pieces);
  return `data:${picture.contentType};base64,${Buffer.concat(pieces).toString("base64")}`;
}
