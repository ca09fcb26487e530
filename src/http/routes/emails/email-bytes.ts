import { notFound, existing } from "../../../core/errors.ts";
import { attachmentBytes, messageBytes } from "../../../flows/read/bytes.ts";
import { raw } from "../../routing/answer.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { OneOf } from "../../routing/schemas.ts";
import { Type } from "@sinclair/typebox";
import { previewPage } from "../../../core/messages/preview-page.ts";
import { readPreview } from "../../../flows/read/preview.ts";
import { PREVIEW_QUERY, PREVIEW_TYPE, previewHeaders } from "../../views/preview.ts";
import type { Parts } from "../../routing/parts.ts";

/** Returns the routes of a message's bytes, attachments and preview. */
export function emailBytesRoutes(deps: Parts): Route[] {
  return [rawRoute(deps), attachmentRoute(deps), emailPreviewRoute(deps)];
}

function rawRoute(deps: Parts): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/emails/:id/raw",
    operationId: "getRawEmail",
    inboxes: "message",
    browserLoads: true,
    scope: "emails:read",
    summary: "Get a message as raw RFC 5322 bytes",
    description:
      "A sent message as it is composed and signed. A received one as it arrived, after the trace fields of this service.",
    answers: { 200: "message/rfc822" },
    errors: ["not_found"],
    async handle({ senderId, params }) {
      const bytes = await messageBytes(deps, senderId, params.id);
      // A refused incoming message has a record but no bytes.
      if (bytes === null) throw notFound("message, or none whose bytes are kept");
      return raw(await deps.handOut(senderId, bytes), "message/rfc822", {
        "content-disposition": "attachment",
      });
    },
  });
}

const PDF = "application/pdf";

/** Headers of a file that is shown: only our own pages may frame it, and if it were a page, it could load nothing. */
const INLINE_HEADERS = {
  "content-security-policy":
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
  "cross-origin-resource-policy": "same-origin",
};

function attachmentRoute(deps: Parts): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/emails/:id/attachments/:attachmentId",
    operationId: "getEmailAttachment",
    inboxes: "message",
    browserLoads: true,
    scope: "emails:read",
    summary: "Download an attachment",
    description:
      "The file's bytes with its own content type. The answer is a download, because an attachment may be hostile, unless it is a PDF file and `inline=1` asks for it. Browsers show that in their own viewer, which has no access to the page around it.",
    query: Type.Object({
      inline: Type.Optional(OneOf(["0", "1"], "`1` lets a browser show a PDF file in a frame of our pages.")),
    }),
    answers: { 200: "*/*" },
    errors: ["not_found"],
    async handle({ senderId, params, query }) {
      const found = existing(
        "attachment",
        await attachmentBytes(deps, senderId, params.id, params.attachmentId),
      );
      const { filename, contentType } = found.attachment;
      const body = await deps.handOut(senderId, found.bytes);
      if (query.inline === "1" && contentType === PDF)
        return raw(body, PDF, { ...INLINE_HEADERS, "content-disposition": disposition(filename, "inline") });
      // A download, because an attachment may be hostile html.
      return raw(body, mediaType(contentType), { "content-disposition": disposition(filename) });
    },
  });
}

/** Returns the stored content type if a header can carry it. */
export function mediaType(contentType: string): string {
  return /^[\x21-\x7e]+\/[\x20-\x7e]+$/.test(contentType) ? contentType : "application/octet-stream";
}

/**
 * Returns a Content-Disposition with that filename. An ASCII form comes first, for old clients (RFC 6266 §4.3). It
 * leaves out characters that would end the quoted text, or that some clients decode (`%41`). A path becomes one name.
 */
export function disposition(filename: string, type: "attachment" | "inline" = "attachment"): string {
  const bare = filename.replace(/[/\\]/g, "_");
  const plain = bare.replace(/[^\x20-\x7e]|["%]/gu, "_");
  return `${type}; filename="${plain}"; filename*=UTF-8''${encodeName(bare)}`;
}

/** RFC 8187 §3.2. */
function encodeName(filename: string): string {
  return encodeURIComponent(filename.toWellFormed()).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16)}`,
  );
}

/** Returns the route that shows the html of a message as a page. */
function emailPreviewRoute(deps: Parts): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/emails/:id/preview",
    operationId: "previewEmail",
    costly: "content",
    scope: "emails:read",
    summary: "Show a message's html as a page that runs nothing",
    description:
      "For a frame or a tab of a browser. The page has its own `Content-Security-Policy`: it runs no script, sends no form and loads nothing. The message's own images are in the page.",
    query: Type.Object(PREVIEW_QUERY),
    browserLoads: true,
    answers: { 200: "text/html" },
    errors: ["not_found"],
    async handle({ senderId, params, query, expectAnswer }) {
      const preview = existing("message", await readPreview(deps, senderId, params.id, expectAnswer));
      const page = Buffer.from(previewPage(preview, query.theme ?? "light"));
      const body = await deps.handOut(senderId, {
        size: page.length,
        held: page.length,
        pieces: pieceOf(page),
      });
      return raw(body, PREVIEW_TYPE, previewHeaders(query.images === "1"));
    },
  });
}

async function* pieceOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
