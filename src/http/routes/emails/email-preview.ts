import { Type } from "@sinclair/typebox";
import { notFound } from "../../../core/errors.ts";
import { previewPage } from "../../../core/messages/preview-page.ts";
import { type PreviewDeps, readPreview } from "../../../flows/read/preview.ts";
import { raw } from "../../routing/answer.ts";
import type { StreamBytes } from "../../pipeline/download.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { PREVIEW_QUERY, PREVIEW_TYPE, previewHeaders } from "../../views/preview.ts";

export interface EmailPreviewDeps extends PreviewDeps {
  handOut: StreamBytes;
}

/** Returns the route that shows the html of a message as a page. */
export function emailPreviewRoute(deps: EmailPreviewDeps): Route {
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
      const preview = await readPreview(deps, senderId, params.id, expectAnswer);
      if (preview === null) throw notFound("message");
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
