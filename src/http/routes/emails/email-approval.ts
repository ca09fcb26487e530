import { Type } from "@sinclair/typebox";
import {
  type ApprovedStatus,
  type Approver,
  approveSend,
  rejectSend,
} from "../../../flows/accept/approval.ts";
import { ok } from "../../routing/answer.ts";
import { type Principal, projectRoute, type Route } from "../../routing/route.ts";
import { OneOf, WITHOUT_NUL } from "../../routing/schemas.ts";
import type { Outbox } from "../../../flows/outbox.ts";

/** Maximum characters of the reason of a rejection. */
const MAX_REASON_CHARS = 500;

const Approved = Type.Object({ id: Type.String(), status: OneOf(["queued", "accepted"]) });
const Rejected = Type.Object({ id: Type.String(), status: Type.Literal("failed") });
const Rejection = Type.Object({
  reason: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_REASON_CHARS,
      ...WITHOUT_NUL,
      examples: ["wrong recipient"],
      description: "Why, for the record and the `failed` event. If absent: `approval_rejected`.",
    }),
  ),
});

/** Returns the routes that approve or reject the sends of keys with `approval`. */
export function emailApprovalRoutes(deps: Outbox): Route[] {
  return [approveRoute(deps), rejectRoute(deps)];
}

function approverOf({ keyId, bounds }: Principal): Approver {
  return { keyId: keyId ?? "", bounds };
}

function approveRoute(deps: Outbox): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/emails/:id/approve",
    operationId: "approveEmail",
    scope: "emails:approve",
    summary: "Approve a message that waits for it",
    description:
      "Messages of a key with `approval` wait with the reason `awaiting_approval`. Neither that key nor another one with `approval` can approve them, and a key with `allowRecipients` only those to its own recipients.",
    answers: { 200: Approved },
    errors: ["not_found", "conflict"],
    async handle({ senderId, params, principal, record }) {
      const answerOf = (status: ApprovedStatus) => ok({ id: params.id, status });
      const recorded = (status: ApprovedStatus) => record(answerOf(status));
      return answerOf(await approveSend(deps, senderId, params.id, approverOf(principal), recorded));
    },
  });
}

function rejectRoute(deps: Outbox): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/emails/:id/reject",
    operationId: "rejectEmail",
    evenFull: true,
    scope: "emails:approve",
    summary: "Reject a message that waits for an approval",
    description: "Its recipients end as `failed` with the reason.",
    examples: { body: { reason: "wrong recipient" } },
    body: Rejection,
    bodyOptional: true,
    answers: { 200: Rejected },
    errors: ["not_found", "conflict"],
    async handle({ senderId, params, principal, body, record }) {
      const answer = ok({ id: params.id, status: "failed" });
      const rejection = { reason: body.reason?.toWellFormed(), record: record(answer) };
      await rejectSend(deps, senderId, params.id, approverOf(principal), rejection);
      return answer;
    },
  });
}
