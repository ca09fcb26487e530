import { Type } from "@sinclair/typebox";
import { AppError, existing } from "../../../core/errors.ts";
import { entriesOf } from "../../../core/messages/address-input.ts";
import { commitSend, prepareSend, sending } from "../../../flows/accept/accept.ts";
import type { Statement } from "../../../store/engine/client.ts";
import { isBroken } from "../../../store/engine/guards.ts";
import { type Draft, getDraft, takeDraft } from "../../../store/drafts/drafts.ts";
import { logAccepted } from "../../pipeline/request-log.ts";
import { exampleId } from "../../openapi/examples.ts";
import { type Answer, accepted } from "../../routing/answer.ts";
import type { Parts } from "../../routing/parts.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { AcceptedMessage } from "../../views/accepted.ts";
import { checkedSend } from "../emails/checked-send.ts";
import type { ReplyContext, SendReply } from "./replies.ts";

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
          ? sendNew(deps, context, draft, recorded)
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
function insteadOf({ item: { to, subject } }: Draft): Pick<Draft["item"], "to" | "subject"> {
  return {
    ...(to === undefined || entriesOf(to).length === 0 ? {} : { to }),
    ...(subject === undefined || subject === "" ? {} : { subject }),
  };
}

function sendNew(
  deps: Parts,
  { project, principal, now, requestId }: ReplyContext,
  { item }: Draft,
  record: (answer: Answer) => readonly Statement[],
): Promise<Answer> {
  const send = checkedSend(item, deps.limits, now);
  return sending(async () => {
    const prepared = await prepareSend(deps, project, principal, send);
    const answer = { ...accepted(prepared.accepted), warnings: prepared.warnings };
    await commitSend(deps, project, prepared, record(answer));
    logAccepted(requestId, [prepared.accepted.id]);
    return answer;
  });
}
