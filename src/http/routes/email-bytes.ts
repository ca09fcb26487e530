import { notFound } from "../../core/errors.ts";
import { attachmentBytes, messageBytes } from "../../flows/read/bytes.ts";
import type { Inspect } from "../../flows/readings.ts";
import type { RenderDeps } from "../../flows/send/render.ts";
import { raw } from "../answer.ts";
import { type HandOut, openDownloads } from "../download.ts";
import { projectRoute, type Route } from "../route.ts";

export interface EmailBytesDeps extends RenderDeps {
  inspect: Inspect;
}

/** The message as bytes, and its attachments. */
export function emailBytesRoutes(deps: EmailBytesDeps): Route[] {
  const handOut = openDownloads(deps.clock);
  return [rawRoute(deps, handOut), attachmentRoute(deps, handOut)];
}

function rawRoute(deps: RenderDeps, handOut: HandOut): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/emails/:id/raw",
    operationId: "getRawEmail",
    scope: "emails:read",
    summary: "Read a message as RFC 5322 bytes",
    answers: { 200: "message/rfc822" },
    errors: ["not_found"],
    async handle({ senderId, params }) {
      const bytes = await messageBytes(deps, senderId, params.id);
      // A mail that was refused has a record and no bytes.
      if (bytes === null) throw notFound("message, or none whose bytes are kept");
      return raw(await handOut(senderId, bytes), "message/rfc822", { "content-disposition": "attachment" });
    },
  });
}

function attachmentRoute(deps: EmailBytesDeps, handOut: HandOut): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/emails/:id/attachments/:attachmentId",
    operationId: "getEmailAttachment",
    scope: "emails:read",
    summary: "Read an attachment's bytes",
    answers: { 200: "*/*" },
    errors: ["not_found"],
    async handle({ senderId, params }) {
      const found = await attachmentBytes(deps, senderId, params.id, params.attachmentId);
      if (found === null) throw notFound("attachment");
      const { filename, contentType } = found.attachment;
      // Always a download: an attachment is a stranger's html as likely as not.
      return raw(await handOut(senderId, found.bytes), mediaType(contentType), {
        "content-disposition": disposition(filename),
      });
    },
  });
}

/** The type as stored, where a header can carry it. */
function mediaType(contentType: string): string {
  return /^[\x21-\x7e]+\/[\x20-\x7e]+$/.test(contentType) ? contentType : "application/octet-stream";
}

/**
 * A download of that name: in ASCII first, for clients that know no other (RFC 6266 §4.3). What would end the quoted
 * text, or be decoded by some (`%41`), is left out of it.
 */
function disposition(filename: string): string {
  const plain = filename.replace(/[^\x20-\x7e]|["\\%]/gu, "_");
  return `attachment; filename="${plain}"; filename*=UTF-8''${encodeName(filename)}`;
}

/** RFC 8187 §3.2. */
function encodeName(filename: string): string {
  return encodeURIComponent(filename.toWellFormed()).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16)}`,
  );
}
