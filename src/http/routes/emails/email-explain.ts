import { Type } from "@sinclair/typebox";
import { existing } from "../../../core/errors.ts";
import { PARTIES } from "../../../flows/read/causes.ts";
import { explain, type Explained } from "../../../flows/read/explain.ts";
import { getMessage } from "../../../store/messages/messages.ts";
import { forwardsOf } from "../../../store/rules/rule-effects.ts";
import { listRecipients } from "../../../store/messages/recipients.ts";
import { ok } from "../../routing/answer.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import type { Parts } from "../../routing/parts.ts";
import { OneOf, showTime, Timestamp } from "../../routing/schemas.ts";

const ExplanationView = Type.Object(
  {
    summary: Type.String(),
    recipients: Type.Array(
      Type.Object({
        email: Type.String(),
        status: Type.String(),
        what: Type.String({ description: "What happened." }),
        why: Type.String({ description: "Why, with the reply of the mail server if there is one." }),
        who: OneOf(PARTIES, "Who can change it. `us`: the operator of this service."),
        next: Type.String({ description: "What to do." }),
        nextAttemptAt: Type.Optional(Timestamp),
      }),
    ),
  },
  { title: "Explanation" },
);

const EXAMPLE = {
  summary: "The message was delivered.",
  recipients: [
    {
      email: "ben@example.com",
      status: "delivered",
      what: "The message was delivered.",
      why: "mx.example.com took it: 250 2.0.0 Ok: queued",
      who: "nobody",
      next: "Nothing.",
    },
  ],
};

function show({ nextAttemptAt, ...explained }: Explained) {
  return nextAttemptAt === undefined ? explained : { ...explained, nextAttemptAt: showTime(nextAttemptAt) };
}

/** Returns the route that explains what became of a message. */
export function emailExplainRoute({ db, findWaits }: Pick<Parts, "db" | "findWaits">): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/emails/:id/explain",
    operationId: "explainEmail",
    scope: "emails:read",
    summary: "Explain in plain words what became of a message, and what to do",
    description: "For each recipient: what happened, why, who can change it, and the next step.",
    // Without `nextAttemptAt`, which only a message that is tried again has.
    examples: { answer: EXAMPLE },
    answers: { 200: ExplanationView },
    errors: ["not_found"],
    async handle({ senderId, params, now }) {
      const message = existing("message", await getMessage(db, senderId, params.id));
      const recipients = await listRecipients(db, senderId, message.id);
      const [waits, forwards] = await Promise.all([
        findWaits(recipients),
        message.direction === "inbound" ? forwardsOf(db, senderId, message.id) : [],
      ]);
      const { summary, recipients: explained } = explain(message, recipients, now, waits, forwards);
      return ok({ summary, recipients: explained.map(show) });
    },
  });
}
