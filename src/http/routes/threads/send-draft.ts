import { Type } from "@sinclair/typebox";
import { AppError, existing } from "../../../core/errors.ts";
import { checkedSend } from "../../../core/messages/send-rules.ts";
import type { ReplyInstead } from "../../../flows/threads/send-one.ts";
import { isBroken } from "../../../store/engine/guards.ts";
import { type Draft, getDraft, takeDraft } from "../../../store/drafts/drafts.ts";
import { exampleId } from "../../openapi/examples.ts";
import type { Answer } from "../../routing/answer.ts";
import type { Parts } from "../../routing/parts.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { AcceptedMessage } from "../../views/accepted.ts";
import { type SendAnswer, type SendContext, sendForRequest } from "../emails/send-for-request.ts";
import type { SendReply } from "./replies.ts";

/** Returns the route that sends a draft. The message and the end of the draft are one commit, so it is sent once. */
export function sendDraftRoute(deps: Parts, sendReply: SendReply): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/drafts/:id/send",
    operationId: "sendDraft",
    stores: { limitedBy: "handler" },
    scope: "emails:send",
    summary: "Send a draft",
    description:
      "Sends it as a send or reply with its fields, from the key of this request, and deletes it in the same commit. A second request gets 404, so it is sent once. With `version`, it is not sent if it has changed since you read it.",
    examples: { body: { version: 1 }, answer: { id: exampleId("msg"), status: "queued" } },
    body: Type.Object(
      {
        version: Type.Optional(
          Type.Integer({ minimum: 1, examples: [1], description: "Of the draft that you read." }),
        ),
      },
      { title: "SendDraft" },
    ),
    bodyOptional: true,
    answers: { 202: AcceptedMessage },
    errors: ["not_found", "conflict"],
    async handle(context) {
      const { senderId, params, body, record } = context;
      const draft = existing("draft", await getDraft(deps.db, senderId, params.id));
      if (body.version !== undefined && body.version !== draft.version) throw changed();
      const recorded = (answer: Answer) => [...record(answer), ...takeDraft(draft)];
      const sent =
        draft.threadId === null
          ? sendNew(deps, context, draft, { record: recorded })
          : sendReply(context, draft.threadId, draft.item, { instead: insteadOf(draft), record: recorded });
      return sent.catch((error: unknown) => {
        throw isBroken(error, "changed_since_read") ? changed() : error;
      });
    },
  });
}

function changed(): AppError {
  return new AppError(
    "conflict",
    "This draft has changed since you read it. Read it again before you send it.",
    {
      code: "invalid_state",
    },
  );
}

/** Returns the fields of a draft that replace those of the reply. */
function insteadOf({ item: { subject } }: Draft): ReplyInstead {
  return subject === undefined || subject === "" ? {} : { subject };
}

async function sendNew(
  deps: Parts,
  context: SendContext,
  { item }: Draft,
  answer: SendAnswer,
): Promise<Answer> {
  const send = checkedSend(item, deps.limits, context.now);
  return sendForRequest(deps, context, async () => ({ send, place: null }), answer);
}
