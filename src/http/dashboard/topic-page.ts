import { Type } from "@sinclair/typebox";
import { PAGE_LANGUAGES } from "../../core/audience/page-texts.ts";
import { existing } from "../../core/errors.ts";
import { previewPage } from "../../core/messages/preview-page.ts";
import { preferencesFor } from "../../flows/audience/preferences.ts";
import { getTopic } from "../../store/audience/topics.ts";
import type { Store } from "../../store/engine/client.ts";
import { raw } from "../routing/answer.ts";
import { projectRoute, type Route } from "../routing/route.ts";
import { preferenceContent } from "../views/audience/preference-page.ts";
import { LINK_PAGE_STYLE, linkPageBody } from "../views/link-page.ts";
import { PREVIEW_QUERY, PREVIEW_TYPE, previewHeaders } from "../views/preview.ts";

/** A page has no images. */
const NO_IMAGES: ReadonlyMap<string, string> = new Map();

/** Returns the route that shows the page behind the unsubscribe links of a topic. Its buttons do nothing. */
export function topicPageRoutes({ db }: Pick<Store, "db">): Route[] {
  return [
    projectRoute({
      method: "GET",
      path: "/ui/topics/:id/:language",
      operationId: "previewTopicPage",
      scope: "audience:read",
      summary: "Show what a reader without a choice sees behind the unsubscribe link of a topic's message",
      query: Type.Object(PREVIEW_QUERY),
      browserLoads: true,
      answers: { 200: "text/html" },
      errors: ["not_found"],
      async handle({ senderId, params, query }) {
        const language = existing("language", PAGE_LANGUAGES.find((one) => one === params.language) ?? null);
        const { id } = existing("topic", await getTopic(db, senderId, params.id));
        const preferences = await preferencesFor(db, { senderId, topicId: id, contact: null }, language);
        const { heading, content } = preferenceContent(preferences, null);
        const html = `<style>${LINK_PAGE_STYLE}</style>${linkPageBody(heading, content)}`;
        const page = previewPage({ html, cut: false, images: NO_IMAGES }, query.theme ?? "light");
        return raw(page, PREVIEW_TYPE, previewHeaders(false));
      },
    }),
  ];
}
