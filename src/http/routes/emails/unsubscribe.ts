import { Type } from "@sinclair/typebox";
import { languageFor } from "../../../core/audience/page-texts.ts";
import { invalid, notFound, existing } from "../../../core/errors.ts";
import { join, preferencesOf } from "../../../flows/audience/preferences.ts";
import {
  recipientOfToken,
  type UnsubscribeDeps,
  unsubscribeRecipient,
} from "../../../flows/deliver/unsubscribe-recipient.ts";
import { UNSUBSCRIBE_PATH } from "../../../flows/mime/unsubscribe.ts";
import type { Recipient } from "../../../store/messages/recipients.ts";
import type { Answer } from "../../routing/answer.ts";
import { openRoute, type Route } from "../../routing/route.ts";
import { OneOf } from "../../routing/schemas.ts";
import { ALL_TOPICS, preferenceContent } from "../../views/audience/preference-page.ts";
import { linkPage } from "../../views/link-page.ts";

const Choice = Type.Object({
  by: Type.Optional(
    Type.String({ description: "`page` if a button of the page was used.", examples: ["page"] }),
  ),
  topic: Type.Optional(
    Type.String({
      description: `The topic of a button, or \`${ALL_TOPICS}\`. Default: that of the message, or all if it has none.`,
      examples: [ALL_TOPICS],
    }),
  ),
  choice: Type.Optional(OneOf(["subscribed", "unsubscribed"], "Default: `unsubscribed`.")),
});

/** Returns the routes of unsubscribe links. */
export function unsubscribeRoutes(deps: UnsubscribeDeps): Route[] {
  const common = {
    path: `${UNSUBSCRIBE_PATH}:token`,
    answers: { 200: "text/html" },
    errors: ["not_found", "service_unavailable"],
  } as const;
  const show = openRoute({
    ...common,
    method: "GET",
    operationId: "showUnsubscribe",
    summary: "Show the page of an unsubscribe link, without unsubscribing",
    description:
      "The page has buttons for the topics that its reader gets or may join, and one that leaves everything, in the language of Accept-Language. Opening it changes nothing, because link checkers open every link.",
    async handle({ params, request }) {
      const recipient = await recipientOfToken(deps, params.token);
      if (recipient === null) throw notFound("link");
      return preferencePage(deps, recipient, request, null);
    },
  });
  const take = openRoute({
    ...common,
    method: "POST",
    operationId: "unsubscribeByLink",
    summary: "Unsubscribe the recipient of the link (RFC 8058)",
    description:
      "Mail programs call it for one-click unsubscribing, which leaves the topic of the message. Makes a contact if the recipient is none.",
    query: Choice,
    async handle({ params, query, ip, request }) {
      const recipient = existing("link", await recipientOfToken(deps, params.token));
      const topicId = query.topic === ALL_TOPICS ? null : query.topic;
      const joins = query.choice === "subscribed";
      await requireShown(deps, recipient, topicId);
      if (joins) await join(deps, recipient, topicId ?? null, ip);
      else
        await unsubscribeRecipient(deps, recipient, {
          how: query.by === "page" ? "page" : "one_click",
          ip,
          topicId,
        });
      return preferencePage(deps, recipient, request, joins ? "saved" : "left");
    },
  });
  return [show, take];
}

/** Throws 422 if the page has no button for the topic. */
async function requireShown(
  deps: UnsubscribeDeps,
  recipient: Recipient,
  topicId: string | null | undefined,
): Promise<void> {
  if (topicId == null) return;
  const { topics } = await preferencesOf(deps, recipient, "en");
  if (!topics.some(({ id }) => id === topicId))
    throw invalid("topic", "must be the id of a topic on the page.");
}

/** Returns the page of a reader. @param done the choice that was just made */
async function preferencePage(
  deps: UnsubscribeDeps,
  recipient: Recipient,
  request: Request,
  done: "left" | "saved" | null,
): Promise<Answer> {
  const language = languageFor(request.headers.get("accept-language"));
  const preferences = await preferencesOf(deps, recipient, language);
  const { heading, content } = preferenceContent(preferences, done);
  return linkPage(heading, content, { lang: language });
}
