import { Type } from "@sinclair/typebox";
import { SendItem, UndoSeconds } from "../../../core/messages/send-item.ts";
import { checkedSend } from "../../../core/messages/send-rules.ts";
import { composeForward } from "../../../flows/threads/forward.ts";
import { exampleId } from "../../openapi/examples.ts";
import type { Parts } from "../../routing/parts.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { OneOf } from "../../routing/schemas.ts";
import { AcceptedMessage } from "../../views/accepted.ts";
import { sendForRequest } from "./send-for-request.ts";

const { to, text, html } = SendItem.properties;
const ForwardBody = Type.Object(
  {
    to,
    text,
    html,
    as: Type.Optional(
      OneOf(
        ["inline", "attachment"],
        "`inline` (if absent): the text below yours, with the files. `attachment`: the whole message as one file, `.eml`.",
      ),
    ),
    undoSeconds: Type.Optional(UndoSeconds),
  },
  { title: "ForwardEmail" },
);

/** Returns the route that forwards a message. */
export function emailForwardRoute(deps: Parts): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/emails/:id/forward",
    operationId: "forwardEmail",
    stores: { limitedBy: "handler" },
    costly: "content",
    scope: "emails:send",
    alsoScope: "emails:read",
    summary: "Forward a message",
    description:
      "Sends a received or sent message on as a new one, from its inbox, and in its thread. `text` and `html` come first. Counts in quotas as any send.",
    examples: {
      body: { to: "ben@example.com", text: "Can you answer this?" },
      answer: { id: exampleId("msg"), status: "queued" },
    },
    body: ForwardBody,
    bodyLimit: "message",
    answers: { 202: AcceptedMessage },
    errors: ["not_found", "conflict"],
    async handle(context) {
      const { senderId, body, now, params } = context;
      const request = { ...body, as: body.as ?? ("inline" as const) };
      const compose = async () => {
        const { item, place } = await composeForward(deps, senderId, params.id, request);
        return { send: checkedSend(item, deps.limits, now), place };
      };
      return sendForRequest(deps, context, compose, context);
    },
  });
}
