import type { Key } from "../../../core/crypto/key-ring.ts";
import { languageFor } from "../../../core/audience/page-texts.ts";
import {
  JOIN_PATH,
  joinByLink,
  type OpenedJoin,
  openJoinLink,
} from "../../../flows/audience/double-opt-in.ts";
import { wordsFor } from "../../../flows/audience/preferences.ts";
import type { Db, Store } from "../../../store/engine/client.ts";
import type { Answer } from "../../routing/answer.ts";
import { mailedLink } from "../../routing/mailed-link.ts";
import { openRoute, type Route } from "../../routing/route.ts";
import { topicName } from "../../views/audience/preference-page.ts";
import { linkPage } from "../../views/link-page.ts";

/** Returns the routes of links by which people join topics. */
export function joinRoutes(deps: Store & { linkKey: Key }): Route[] {
  const { common, opened } = mailedLink(JOIN_PATH, (token) => openJoinLink(deps, token));
  return [
    openRoute({
      ...common,
      method: "GET",
      operationId: "showJoin",
      summary: "Show the topics that a link joins",
      description:
        "The page has a button. Opening it changes nothing, because link checkers open every link.",
      async handle({ params, request }) {
        return page(deps.db, await opened(params.token), request);
      },
    }),
    openRoute({
      ...common,
      method: "POST",
      operationId: "joinByLink",
      summary: "Join the topics of a link",
      description:
        "The trail of the contact gets the time, the address of the request and `double_opt_in`. A second call changes nothing.",
      async handle({ params, request, ip }) {
        const link = await opened(params.token);
        await joinByLink(deps, link, ip);
        return page(deps.db, { ...link, waits: false }, request);
      },
    }),
  ];
}

async function page(
  db: Db,
  { link, projectName, topics, waits }: OpenedJoin,
  request: Request,
): Promise<Answer> {
  const lang = languageFor(request.headers.get("accept-language"));
  const { join, saved, subscribed } = await wordsFor(db, link.senderId, lang);
  const rows = topics.map((topic) => `<div>${topicName(topic)}</div>`);
  const button = waits
    ? `<form method="post"><button>${Bun.escapeHTML(join)}</button></form>`
    : `<p>${Bun.escapeHTML(saved)}</p>`;
  const content = `<p>${Bun.escapeHTML(projectName)}</p><dl>${rows.join("")}</dl>${button}`;
  return linkPage(Bun.escapeHTML(waits ? join : subscribed), content, { lang });
}
