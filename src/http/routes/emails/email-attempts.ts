import { Type } from "@sinclair/typebox";
import { notFound } from "../../../core/errors.ts";
import { type AttemptCursor, listAttempts } from "../../../store/messages/attempts.ts";
import type { Db } from "../../../store/engine/client.ts";
import { getMessage } from "../../../store/messages/messages.ts";
import { ok } from "../../routing/answer.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { PAGE_QUERY, PageOf } from "../../routing/schemas.ts";
import { AttemptView, showAttempt } from "../../views/attempt.ts";

/** Returns the route that lists the delivery attempts of a message. */
export function emailAttemptsRoute({ db }: { db: Db }): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/emails/:id/attempts",
    operationId: "listEmailAttempts",
    scope: "emails:read",
    summary: "List a message's delivery attempts with their SMTP conversations, oldest first",
    description:
      "One item per attempt and recipient. Recipients without an attempt have none, because they were rejected at once or still wait. Received messages have none either.",
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

function textOf({ startedAt, ord, attempt }: AttemptCursor): string {
  return `${startedAt}.${ord}.${attempt}`;
}

/** Returns the position in a cursor. Cursors are authenticated, so the text is our own. */
function placeOf(text: string | null): AttemptCursor | null {
  if (text === null) return null;
  const [startedAt = 0, ord = 0, attempt = 0] = text.split(".").map(Number);
  return { startedAt, ord, attempt };
}
