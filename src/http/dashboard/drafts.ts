import { Type } from "@sinclair/typebox";
import { setBounded } from "../../core/collections.ts";
import { notFound } from "../../core/errors.ts";
import { randomBase62 } from "../../core/ids.ts";
import { previewPage, shownPart } from "../../core/messages/preview-page.ts";
import { created, raw } from "../routing/answer.ts";
import { accountRoute, type Route } from "../routing/route.ts";
import { PREVIEW_QUERY, PREVIEW_TYPE, previewHeaders } from "../views/preview.ts";

/**
 * Maximum number of drafts that are kept. A newer one replaces the oldest. With the limit of a body they hold at
 * most 32 MiB.
 */
const MAX_DRAFTS = 32;
/** Milliseconds for which a draft is kept. */
export const DRAFT_MS = 5 * 60 * 1000;
/** 95 random bits. */
const ID_CHARS = 16;

interface Draft {
  html: string;
  keyId: string | null;
  /** Milliseconds. */
  expiresAt: number;
}

/** A draft has no attachments. */
const NO_IMAGES: ReadonlyMap<string, string> = new Map();

const PATH = "/ui/preview";

const NewDraft = Type.Object({ html: Type.String() });
const DraftUrl = Type.Object({ url: Type.String({ description: "Works for five minutes." }) });

/**
 * Returns the routes that show html which is not stored, such as that of a template being written. A frame needs a
 * URL with its own headers: a page in `srcdoc` would have the dashboard's policy. Drafts are kept in this process,
 * and only the key that made one may see it.
 */
export function draftRoutes(): Route[] {
  const drafts = new Map<string, Draft>();
  return [makeRoute(drafts), showRoute(drafts)];
}

function makeRoute(drafts: Map<string, Draft>): Route {
  return accountRoute({
    method: "POST",
    path: PATH,
    operationId: "previewDraft",
    scope: null,
    summary: "Make a page of html for a few minutes",
    body: NewDraft,
    answers: { 201: DraftUrl },
    handle({ body, principal, now }) {
      for (const [old, { expiresAt }] of drafts) if (expiresAt <= now) drafts.delete(old);
      const id = randomBase62(ID_CHARS);
      const draft = { html: body.html, keyId: principal.keyId, expiresAt: now + DRAFT_MS };
      setBounded(drafts, id, draft, MAX_DRAFTS);
      return created({ url: `${PATH}/${id}` });
    },
  });
}

function showRoute(drafts: ReadonlyMap<string, Draft>): Route {
  return accountRoute({
    method: "GET",
    path: `${PATH}/:id`,
    operationId: "showDraft",
    scope: null,
    summary: "Show a draft's html as a page that runs nothing",
    query: Type.Object(PREVIEW_QUERY),
    browserLoads: true,
    answers: { 200: "text/html" },
    errors: ["not_found"],
    handle({ params, query, principal, now }) {
      const draft = drafts.get(params.id);
      if (draft === undefined || draft.keyId !== principal.keyId || draft.expiresAt <= now)
        throw notFound("draft");
      const html = shownPart(draft.html);
      const shown = { html, cut: html.length < draft.html.length, images: NO_IMAGES };
      const page = previewPage(shown, query.theme ?? "light");
      return raw(page, PREVIEW_TYPE, previewHeaders(query.images === "1"));
    },
  });
}
