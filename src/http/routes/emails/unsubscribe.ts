import { notFound, existing } from "../../../core/errors.ts";
import { Type } from "@sinclair/typebox";
import {
  recipientOfToken,
  type UnsubscribeDeps,
  unsubscribeRecipient,
} from "../../../flows/deliver/unsubscribe-recipient.ts";
import { UNSUBSCRIBE_PATH } from "../../../flows/mime/unsubscribe.ts";
import { openRoute, type Route } from "../../routing/route.ts";
import { linkPage } from "../../views/link-page.ts";

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
      "The page has a button that unsubscribes. Opening it changes nothing, because link checkers open every link.",
    async handle({ params }) {
      if ((await recipientOfToken(deps, params.token)) === null) throw notFound("link");
      // A GET must not unsubscribe, because link scanners open every link in a message.
      return linkPage(
        "Unsubscribe",
        '<form method="post" action="?by=page"><button>Unsubscribe</button></form>',
      );
    },
  });
  const take = openRoute({
    ...common,
    method: "POST",
    operationId: "unsubscribeByLink",
    summary: "Unsubscribe the recipient of the link (RFC 8058)",
    description:
      "Mail programs call it for one-click unsubscribing. Makes a contact if the recipient is none.",
    query: Type.Object({
      by: Type.Optional(
        Type.String({ description: "`page` if the button of the page was used.", examples: ["page"] }),
      ),
    }),
    async handle({ params, query, ip }) {
      const recipient = existing("link", await recipientOfToken(deps, params.token));
      await unsubscribeRecipient(deps, recipient, query.by === "page" ? "page" : "one_click", ip);
      return linkPage("Unsubscribed", "<p>You will get no more of these messages.</p>");
    },
  });
  return [show, take];
}
