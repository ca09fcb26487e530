import type { Key } from "../../../core/crypto/key-ring.ts";
import { languageFor, pageTexts } from "../../../core/audience/page-texts.ts";
import { existing } from "../../../core/errors.ts";
import {
  JOIN_PATH,
  joinByLink,
  type OpenedJoin,
  openJoinLink,
} from "../../../flows/audience/double-opt-in.ts";
import type { Store } from "../../../store/engine/client.ts";
import type { Answer } from "../../routing/answer.ts";
import { openRoute, type Route } from "../../routing/route.ts";
import { linkPage } from "../../views/link-page.ts";

/** Returns the routes of links by which people join topics. */
export function joinRoutes(deps: Store & { linkKey: Key }): Route[] {
  const common = {
    path: `${JOIN_PATH}:token`,
    answers: { 200: "text/html" },
    errors: ["not_found", "service_unavailable"],
  } as const;
  const opened = async (token: string) =>
    existing("link, or one that has expired", await openJoinLink(deps, token));
  return [
    openRoute({
      ...common,
      method: "GET",
      operationId: "showJoin",
      summary: "Show the topics that a link joins",
      description:
        "The page has a button. Opening it changes nothing, because link checkers open every link.",
      async handle({ params, request }) {
        return page(await opened(params.token), request);
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
        return page({ ...link, waits: false }, request);
      },
    }),
  ];
}

function page({ projectName, topics, waits }: OpenedJoin, request: Request): Answer {
  const lang = languageFor(request.headers.get("accept-language"));
  const texts = pageTexts(lang);
  const rows = topics.map(
    ({ name, description }) => `<dt>${Bun.escapeHTML(name)}</dt><dd>${Bun.escapeHTML(description)}</dd>`,
  );
  const button = waits
    ? `<form method="post"><button>${texts.join}</button></form>`
    : `<p>${texts.saved}</p>`;
  const content = `<p>${Bun.escapeHTML(projectName)}</p><dl>${rows.join("")}</dl>${button}`;
  return linkPage(waits ? texts.join : texts.subscribed, content, {
    lang,
    headers: { "cache-control": "no-store" },
  });
}
