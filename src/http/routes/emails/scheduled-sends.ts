import { Type } from "@sinclair/typebox";
import { invalid } from "../../../core/errors.ts";
import { readSchedule } from "../../../core/time/schedule.ts";
import { cancelSend, rescheduleSend } from "../../../flows/accept/scheduled-sends.ts";
import { ok } from "../../routing/answer.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { showTime, TIME, Timestamp } from "../../routing/schemas.ts";
import type { Sending } from "../../../flows/accept/sending.ts";

const Rescheduled = Type.Object({
  id: Type.String(),
  status: Type.Literal("accepted"),
  scheduledAt: Timestamp,
});
const Canceled = Type.Object({ id: Type.String(), status: Type.Literal("failed") });

/** Returns the routes that reschedule or cancel a scheduled message. */
export function emailScheduleRoutes(deps: Sending): Route[] {
  return [rescheduleRoute(deps), cancelRoute(deps)];
}

function rescheduleRoute(deps: Sending): Route {
  return projectRoute({
    method: "PATCH",
    path: "/v1/emails/:id",
    operationId: "rescheduleEmail",
    scope: "emails:send",
    summary: "Reschedule a message",
    description:
      "Works while the message is `accepted`, that is, before its time, and does not wait for an approval. Else 409. A key with `approval` cannot reschedule.",
    body: Type.Object({
      scheduledAt: Type.String({ ...TIME, description: "ISO 8601 time with a zone. A past time sends now." }),
    }),
    answers: { 200: Rescheduled },
    errors: ["not_found", "conflict"],
    async handle({ senderId, params, body, now, principal }) {
      const at = readSchedule(body.scheduledAt, deps.limits.maxScheduleDays, now);
      if (typeof at !== "number") throw invalid(at.param, at.message, at.code);
      const scheduledAt = await rescheduleSend(deps, senderId, params.id, at, principal.bounds);
      return ok({ id: params.id, status: "accepted", scheduledAt: showTime(scheduledAt) });
    },
  });
}

function cancelRoute(deps: Sending): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/emails/:id/cancel",
    operationId: "cancelEmail",
    evenFull: true,
    scope: "emails:send",
    summary: "Cancel a scheduled message",
    description:
      "Works while the message is `accepted`, that is, before its time. The message ends as `failed` with the reason `canceled`.",
    answers: { 200: Canceled },
    errors: ["not_found", "conflict"],
    async handle({ senderId, params, record }) {
      const answer = ok({ id: params.id, status: "failed" });
      await cancelSend(deps, senderId, params.id, record(answer));
      return answer;
    },
  });
}
