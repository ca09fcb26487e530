import { Type } from "@sinclair/typebox";
import { createKeyedMutex } from "../../../core/concurrency/keyed-mutex.ts";
import { validationError } from "../../../core/errors.ts";
import { entriesOf } from "../../../core/messages/address-input.ts";
import { decisiveFieldIssues } from "../../../core/messages/decisive-fields.ts";
import { INVITATION_ANSWERS } from "../../../core/messages/invitation.ts";
import { SendItem } from "../../../core/messages/send-item.ts";
import { prepareSend, sending } from "../../../flows/accept/accept.ts";
import { commitReply, composeReply, replyEntry, withoutDoubles } from "../../../flows/accept/reply.ts";
import { logAccepted } from "../../pipeline/request-log.ts";
import { accepted } from "../../routing/answer.ts";
import type { Parts } from "../../routing/parts.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { OneOf } from "../../routing/schemas.ts";
import { checkedSend } from "../emails/checked-send.ts";

const { text, html, templateId, data, cc, bcc, attachments, calendar, headers, tags } = SendItem.properties;
const ReplyBody = Type.Object({
  text,
  html,
  templateId,
  data,
  cc,
  bcc,
  attachments,
  calendar,
  headers,
  tags,
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
});
const REPLY_FIELDS: ReadonlySet<string> = new Set(Object.keys(ReplyBody.properties));
const Replied = Type.Object({ id: Type.String(), status: Type.String(), threadId: Type.String() });

/** Returns the route that replies to a thread. */
export function replyRoute(deps: Parts): Route {
  // Replies to one thread run one after another, so that each counts those before it. Between processes, the commit
  // decides.
  const inTurn = createKeyedMutex();
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
    bodyLimit: "message",
    answers: { 202: Replied },
    errors: ["not_found", "conflict"],
    handle({ senderId, project, principal, params, body, now, record, requestId }) {
      const unknown = decisiveFieldIssues(body, REPLY_FIELDS);
      if (unknown.length > 0) throw validationError(unknown);
      return inTurn(params.id, () =>
        sending(async () => {
          const { item, ownHeaders, inbox } = await composeReply(deps, senderId, params.id, body, now);
          const checked = checkedSend(item, deps.limits, now, ownHeaders);
          const reply = { ...checked, item: withoutDoubles(checked.item, entriesOf(body.cc).length) };
          const entry = replyEntry(senderId, { threadId: params.id, inbox }, now);
          const prepared = await prepareSend(deps, project, principal, reply, { into: entry });
          const { id, status } = prepared.accepted;
          const answer = accepted({ id, status, threadId: params.id });
          await commitReply(deps, project, prepared, record(answer));
          logAccepted(requestId, [id]);
          return answer;
        }),
      );
    },
  });
}
