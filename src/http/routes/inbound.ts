import { Type } from "@sinclair/typebox";
import { validationError } from "../../core/errors.ts";
import { MAX_SUBJECT_CHARS, SendItem } from "../../core/send-item.ts";
import { attachmentIssues, MAX_BODY_PART_BYTES } from "../../core/send-rules.ts";
import { toAttachment } from "../../flows/send/attachment.ts";
import { type SimulateDeps, simulateInbound } from "../../flows/receive/simulate.ts";
import type { Arrival } from "../../flows/receive/take.ts";
import { accepted } from "../answer.ts";
import { projectRoute, type Route } from "../route.ts";

const SimulateBody = Type.Object({
  inboxId: Type.Optional(Type.String({ description: "The inbox; or name its address in `to`." })),
  to: Type.Optional(Type.String()),
  from: Type.Optional(SendItem.properties.from),
  subject: Type.Optional(Type.String({ maxLength: MAX_SUBJECT_CHARS })),
  text: Type.Optional(Type.String({ maxLength: MAX_BODY_PART_BYTES })),
  html: Type.Optional(Type.String({ maxLength: MAX_BODY_PART_BYTES })),
  attachments: SendItem.properties.attachments,
  inReplyTo: Type.Optional(
    Type.String({ maxLength: 998, description: "A Message-ID, or the id of a message or thread." }),
  ),
});
const Simulated = Type.Object({
  messageId: Type.String(),
  threadId: Type.String(),
  testMode: Type.Literal(true),
});

export interface InboundRouteDeps extends SimulateDeps {
  limits: { maxAttachments: number; maxMessageBytes: number };
}

/** `POST /v1/inbound/simulate`. */
export function inboundRoutes(deps: InboundRouteDeps): Route[] {
  const simulate = projectRoute({
    method: "POST",
    path: "/v1/inbound/simulate",
    operationId: "simulateInbound",
    scope: "inboxes:write",
    summary: "Let a mail arrive, in test mode",
    body: SimulateBody,
    answers: { 202: Simulated },
    errors: ["not_found"],
    async handle({ senderId, body, now, record }) {
      const issues = attachmentIssues(body.attachments ?? [], deps.limits.maxAttachments);
      if (issues.length > 0) throw validationError(issues);
      const attachments = (body.attachments ?? []).map((posted) => toAttachment(posted, now));
      const answer = (arrival: Arrival) => accepted({ ...arrival, testMode: true });
      const mail = { ...body, attachments };
      return answer(await simulateInbound(deps, senderId, mail, (arrival) => record(answer(arrival))));
    },
  });
  return [simulate];
}
