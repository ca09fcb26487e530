import { exampleId } from "../../openapi/examples.ts";
import { Type } from "@sinclair/typebox";
import { validationError } from "../../../core/errors.ts";
import { Address, addressIssues, mailboxOf } from "../../../core/messages/address-input.ts";
import { MAX_SUBJECT_CHARS, SendItem } from "../../../core/messages/send-item.ts";
import { attachmentIssues, MAX_BODY_PART_BYTES } from "../../../core/messages/send-rules.ts";
import { toAttachment } from "../../../flows/accept/attachment.ts";
import { simulateInbound } from "../../../flows/receive/simulate.ts";
import type { Arrival } from "../../../flows/receive/store-inbound.ts";
import { accepted } from "../../routing/answer.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import type { Parts } from "../../routing/parts.ts";

const SimulateBody = Type.Object({
  inboxId: Type.Optional(
    Type.String({
      description: "The inbox. Alternatively, give its address in `to`.",
      examples: ["inb_01hzy8"],
    }),
  ),
  to: Type.Optional(Address),
  from: Type.Optional(Address),
  subject: Type.Optional(Type.String({ maxLength: MAX_SUBJECT_CHARS, examples: ["Hello"] })),
  text: Type.Optional(Type.String({ maxLength: MAX_BODY_PART_BYTES, examples: ["Hi Ana"] })),
  html: Type.Optional(Type.String({ maxLength: MAX_BODY_PART_BYTES, examples: ["<p>Hi Ana</p>"] })),
  attachments: SendItem.properties.attachments,
  inReplyTo: Type.Optional(
    Type.String({
      maxLength: 998,
      description: "A Message-ID, or the id of a message or thread.",
      examples: ["msg_01hzy8"],
    }),
  ),
});
const Simulated = Type.Object({
  messageId: Type.String(),
  threadId: Type.String(),
  testMode: Type.Literal(true),
});

/** Returns the route of `POST /v1/inbound/simulate`. */
export function inboundRoutes(deps: Parts): Route[] {
  const simulate = projectRoute({
    method: "POST",
    path: "/v1/inbound/simulate",
    operationId: "simulateInbound",
    costly: "content",
    stores: { limitedBy: "handler" },
    scope: "inboxes:write",
    summary: "Simulate an inbound message",
    description:
      "Builds a message and receives it as if it came by SMTP, with webhooks. The message is flagged `testMode`.",
    examples: { body: { inboxId: exampleId("inb"), from: "ben@example.com", subject: "Hello", text: "Hi" } },
    body: SimulateBody,
    bodyLimit: "message",
    answers: { 202: Simulated },
    errors: ["not_found"],
    async handle({ senderId, body, now, record }) {
      const issues = [
        ...(body.from === undefined ? [] : addressIssues(body.from, "from")),
        ...(body.to === undefined ? [] : addressIssues(body.to, "to")),
        ...attachmentIssues(body.attachments ?? [], deps.limits.maxAttachments),
      ];
      if (issues.length > 0) throw validationError(issues);
      const attachments = (body.attachments ?? []).map((posted) => toAttachment(posted, now));
      const answer = (arrival: Arrival) => accepted({ ...arrival, testMode: true });
      const from = body.from === undefined ? undefined : mailboxOf(body.from);
      const to = body.to === undefined ? undefined : mailboxOf(body.to);
      const mail = { ...body, from, to, attachments };
      return answer(await simulateInbound(deps, senderId, mail, (arrival) => record(answer(arrival))));
    },
  });
  return [simulate];
}
