import { type Static, Type } from "@sinclair/typebox";
import { createKeyedMutex } from "../../../core/concurrency/keyed-mutex.ts";
import { validationError } from "../../../core/errors.ts";
import { AddressList } from "../../../core/messages/address-input.ts";
import { decisiveFieldIssues } from "../../../core/messages/decisive-fields.ts";
import { INVITATION_ANSWERS } from "../../../core/messages/invitation.ts";
import { SendItem, UndoSeconds } from "../../../core/messages/send-item.ts";
import type { PreparedSend } from "../../../flows/accept/accept.ts";
import { checkedReply, type ReplyInstead } from "../../../flows/threads/send-one.ts";
import { type Answer, accepted } from "../../routing/answer.ts";
import { DATE_TIME } from "../../routing/shown-format.ts";
import type { Parts } from "../../routing/parts.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { OneOf } from "../../routing/schemas.ts";
import { type SendAnswer, type SendContext, sendForRequest } from "../emails/send-for-request.ts";

const { text, html, templateId, data, cc, bcc, attachments, calendar, headers, tags } = SendItem.properties;
const ReplyBody = Type.Object(
  {
    text,
    html,
    templateId,
    data,
    to: Type.Optional(AddressList({ description: "Addresses in place of the sender of that message." })),
    cc,
    bcc,
    attachments,
    calendar,
    headers,
    tags,
    undoSeconds: Type.Optional(UndoSeconds),
    invitation: Type.Optional(
      OneOf(
        INVITATION_ANSWERS,
        "Answers the invitation in that message: the reply goes to its organizer with a calendar object. `text` and `html` may be absent.",
      ),
    ),
    replyAll: Type.Optional(
      Type.Boolean({ description: "Also replies to the other recipients of that message." }),
    ),
    messageId: Type.Optional(
      Type.String({
        description: "The message to reply to. If absent: the newest inbound message of the thread.",
        examples: ["msg_01hzy8"],
      }),
    ),
  },
  { title: "NewReply" },
);
const REPLY_FIELDS: ReadonlySet<string> = new Set(Object.keys(ReplyBody.properties));
export const Replied = Type.Object(
  {
    id: Type.String({ examples: ["msg_01hzy8"] }),
    status: Type.String(),
    scheduledAt: Type.Optional(
      Type.String({ ...DATE_TIME, description: "When it leaves, with `undoSeconds`." }),
    ),
    threadId: Type.String(),
  },
  { title: "AcceptedReply" },
);

/** How a reply differs from one that is posted. */
export interface ReplyOptions extends Pick<SendAnswer, "record"> {
  instead?: ReplyInstead;
}

export type SendReply = (
  context: SendContext,
  threadId: string,
  request: Static<typeof ReplyBody>,
  options: ReplyOptions,
) => Promise<Answer>;

/**
 * Returns the function that sends replies. Replies to one thread run one after another, so that each counts those before it.
 * Between processes, the commit decides.
 */
export function replies(deps: Parts): SendReply {
  const inTurn = createKeyedMutex();
  return (context, threadId, request, { instead, record }) =>
    inTurn(threadId, () => {
      const compose = () => checkedReply(deps, context, threadId, request, instead);
      const show = ({ accepted: sent }: PreparedSend) => accepted({ ...sent, threadId });
      return sendForRequest(deps, context, compose, { show, record });
    });
}

/** Returns the route that replies to a thread. */
export function replyRoute(sendReply: SendReply): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/threads/:id/reply",
    operationId: "replyToThread",
    inboxes: "thread",
    stores: { limitedBy: "handler" },
    scope: "threads:reply",
    summary: "Reply to a message of a thread",
    description:
      "Sends from the inbox's address to the sender of the message, in the same thread. `Re:`, `In-Reply-To` and `References` are set.",
    examples: { body: { text: "Thank you. It works now." } },
    body: ReplyBody,
    seesAllFields: true,
    bodyLimit: "message",
    answers: { 202: Replied },
    errors: ["not_found", "conflict"],
    handle(context) {
      const { params, body, record } = context;
      const unknown = decisiveFieldIssues(body, REPLY_FIELDS);
      if (unknown.length > 0) throw validationError(unknown);
      return sendReply(context, params.id, body, { record });
    },
  });
}
