import { Type } from "@sinclair/typebox";
import { SendItem } from "../../../core/messages/send-item.ts";
import { checkSending } from "../../../flows/accept/check.ts";
import { ok } from "../../routing/answer.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { ItemError, OneOf } from "../../routing/schemas.ts";
import { checkedSend } from "../../../core/messages/send-rules.ts";
import { showRefusal } from "./refusal.ts";
import type { Sending } from "../../../flows/accept/sending.ts";

/** The effects that a send would have. */
export const CheckView = Type.Object(
  {
    wouldAccept: Type.Boolean(),
    error: Type.Optional(ItemError),
    size: Type.Integer({ description: "Octets of the message, roughly." }),
    clipped: Type.Boolean({ description: "True if Gmail would hide the end of the html." }),
    findings: Type.Array(
      Type.Object({
        level: OneOf(["error", "warning", "info"]),
        code: Type.String(),
        message: Type.String(),
        fix: Type.String(),
      }),
    ),
  },
  { title: "SendCheck" },
);

/** Returns the route that checks a send without sending. */
export function emailCheckRoute(deps: Sending): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/emails/check",
    operationId: "checkEmail",
    costly: "content",
    scope: "emails:send",
    summary: "Check a message without sending it",
    description:
      "Says whether a send would be accepted now, and what may keep the message from its reader. Stores and sends nothing.",
    body: SendItem,
    bodyLimit: "message",
    bodyCheckedBy: "handler",
    readsOnly: true,
    answers: { 200: CheckView },
    async handle({ body, now, project, principal }) {
      const send = checkedSend(body, deps.limits, now);
      const { error, ...found } = await checkSending(deps, project, principal, send);
      return ok({ wouldAccept: error === null, ...(error === null ? {} : showRefusal(error)), ...found });
    },
  });
}
