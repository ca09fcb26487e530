import type { Key } from "../../core/crypto/key-ring.ts";
import { Type } from "@sinclair/typebox";
import { notFound, existing } from "../../core/errors.ts";
import { seal, unseal } from "../../core/crypto/secretbox.ts";
import { attachmentBytes, type Bytes, messageBytes } from "../../flows/read/bytes.ts";
import { type Attachment, listAttachments } from "../../store/messages/attachments.ts";
import { getMessage } from "../../store/messages/messages.ts";
import { raw } from "../routing/answer.ts";
import { openRoute, type Route } from "../routing/route.ts";
import { disposition, mediaType } from "../routes/emails/email-bytes.ts";
import { showTime } from "../routing/schemas.ts";
import { ID_PAGE, listBody, type Operations, RESEND_PATH, resendRoute } from "./form/translate.ts";
import type { Parts } from "../routing/parts.ts";

/** How long a download link works, as Resend's do. */
const LINK_MS = 60 * 60 * 1000;
const FILES_PATH = `${RESEND_PATH}/files/`;
/** Longest sealed link that is opened, characters. */
const MAX_SEALED_CHARS = 512;

/** Names a message's raw bytes in a link, in place of an attachment. */
const RAW = "raw";

/** Returns a link to an attachment, or to the raw message, that works for an hour without a key. */
export function downloadLink(
  { fileKey, publicUrl }: Pick<Parts, "fileKey" | "publicUrl">,
  { senderId, messageId, file, now }: { senderId: string; messageId: string; file: string; now: number },
): { download_url: string; expires_at: string } {
  const until = now + LINK_MS;
  const sealed = seal(fileKey, JSON.stringify(["file", senderId, messageId, file, until]));
  return { download_url: `${publicUrl}${FILES_PATH}${sealed}`, expires_at: showTime(until) };
}

/** Returns the link to a raw message. */
export function rawLink(deps: Parts, senderId: string, messageId: string, now: number) {
  return downloadLink(deps, { senderId, messageId, file: RAW, now });
}

/** Returns the routes of the attachments of sent or received messages, which are below `base`. */
export function attachmentRoutes(
  operations: Operations,
  deps: Parts,
  base: "/emails" | "/emails/receiving",
): Route[] {
  const direction = base === "/emails" ? "outbound" : "inbound";
  const path = `${base}/:id/attachments`;
  const attachmentsOf = async (senderId: string, id: string): Promise<Attachment[]> => {
    const message = await getMessage(deps.db, senderId, id);
    if (message?.direction !== direction) throw notFound("email");
    return listAttachments(deps.db, senderId, id);
  };
  const list = { method: "GET", path, operation: "getEmailAttachment", summary: "List attachments" } as const;
  const one = { ...list, path: `${path}/:attachmentId`, summary: "Get an attachment" } as const;
  return [
    resendRoute(
      operations,
      { ...list, query: Type.Object(ID_PAGE) },
      async ({ senderId, params, now, query }) => {
        const all = await attachmentsOf(senderId ?? "", params.id ?? "");
        const link = linkOf(deps, senderId ?? "", params.id ?? "", now);
        const { items, more } = pageOf(all, query);
        return {
          status: 200,
          body: listBody(
            items.map((item) => show(item, link(item.id))),
            more,
          ),
        };
      },
    ),
    resendRoute(operations, one, async ({ senderId, params, now }) => {
      const all = await attachmentsOf(senderId ?? "", params.id ?? "");
      const attachment = all.find(({ id }) => id === params.attachmentId);
      if (attachment === undefined) throw notFound("attachment");
      const link = linkOf(deps, senderId ?? "", params.id ?? "", now);
      return { status: 200, body: { object: "attachment", ...show(attachment, link(attachment.id)) } };
    }),
  ];
}

function linkOf(deps: Parts, senderId: string, messageId: string, now: number) {
  return (file: string) => downloadLink(deps, { senderId, messageId, file, now });
}

/** Returns the part of a message's attachments, in their order, that the query asks for. */
function pageOf(all: readonly Attachment[], query: unknown): { items: Attachment[]; more: boolean } {
  const { limit = 20, after, before } = query as { limit?: number; after?: string; before?: string };
  const from = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
  const end =
    before === undefined
      ? all.length
      : Math.max(
          0,
          all.findIndex(({ id }) => id === before),
        );
  const items =
    before === undefined ? all.slice(from, from + limit) : all.slice(Math.max(0, end - limit), end);
  return { items, more: before === undefined ? from + limit < all.length : end > limit };
}

function show(attachment: Attachment, link: ReturnType<typeof downloadLink>): Record<string, unknown> {
  const { id, filename, size, contentType, disposition: kind, contentId } = attachment;
  return {
    id,
    filename,
    size,
    content_type: contentType,
    content_disposition: kind,
    ...(contentId === null ? {} : { content_id: contentId }),
    ...link,
  };
}

/** Returns the route that hands out the bytes of a link. The link is the right to read them, so no key is needed. */
export function fileRoute(deps: Parts): Route {
  return openRoute({
    method: "GET",
    path: `${FILES_PATH}:sealed`,
    operationId: "resend GET /files",
    summary: "Download a file by its link",
    undocumented: true,
    answers: { 200: "*/*" },
    async handle({ params, now }) {
      const target = existing("link, or one that has expired", openLink(deps.fileKey, params.sealed, now));
      const found = existing("file", await fileOf(deps, target));
      return raw(await deps.handOut(target.senderId, found.bytes), mediaType(found.contentType), {
        "content-disposition": disposition(found.filename),
      });
    },
  });
}

interface FileTarget {
  senderId: string;
  messageId: string;
  file: string;
}

function openLink(fileKey: Key, sealed: string, now: number): FileTarget | null {
  if (sealed.length > MAX_SEALED_CHARS) return null;
  try {
    const [kind, senderId, messageId, file, until] = JSON.parse(unseal(fileKey, sealed));
    return kind === "file" && until > now ? { senderId, messageId, file } : null;
  } catch {
    return null;
  }
}

async function fileOf(
  deps: Parts,
  { senderId, messageId, file }: FileTarget,
): Promise<{ bytes: Bytes; filename: string; contentType: string } | null> {
  if (file === RAW) {
    const bytes = await messageBytes(deps, senderId, messageId);
    return bytes === null ? null : { bytes, filename: `${messageId}.eml`, contentType: "message/rfc822" };
  }
  const found = await attachmentBytes(deps, senderId, messageId, file);
  return found === null ? null : { bytes: found.bytes, ...found.attachment };
}
