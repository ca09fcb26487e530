import { Type } from "@sinclair/typebox";
import { notFound } from "../../core/errors.ts";
import { type AttemptPlace, listAttempts } from "../../store/attempts.ts";
import type { Db } from "../../store/engine/client.ts";
import { getMessage } from "../../store/messages.ts";
import { ok } from "../answer.ts";
import { projectRoute, type Route } from "../route.ts";
import { PAGE_QUERY, PageOf } from "../schemas.ts";
import { AttemptView, showAttempt } from "../views/attempt.ts";

/** How each try at delivering a message went. */
export function emailAttemptsRoute({ db }: { db: Db }): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/emails/:id/attempts",
    operationId: "listEmailAttempts",
    scope: "emails:read",
    summary: "List a message's delivery attempts with their SMTP conversations, oldest first",
    description:
      "One item for each try at each recipient. A recipient that was never tried has none: one rejected when the message was accepted, one still waiting. A received message has none either.",
    query: Type.Object(PAGE_QUERY),
    answers: { 200: PageOf(AttemptView) },
    errors: ["not_found"],
    async handle({ senderId, params, page: openedPage }) {
      const page = openedPage();
      if ((await getMessage(db, senderId, params.id)) === null) throw notFound("message");
      const attempts = await listAttempts(db, senderId, params.id, placeOf(page.after), page.take);
      return ok(page.answer(attempts, showAttempt, textOf));
    },
  });
}

function textOf({ startedAt, ord, attempt }: AttemptPlace): string {
  return `${startedAt}.${ord}.${attempt}`;
}

/** The place in a cursor; its text is our own, since cursors are authenticated. */
function placeOf(text: string | null): AttemptPlace | null {
  if (text === null) return null;
  const [startedAt = 0, ord = 0, attempt = 0] = text.split(".").map(Number);
  return { startedAt, ord, attempt };
}
