import { Type } from "@sinclair/typebox";
import { AppError, existing, invalid } from "../../../core/errors.ts";
import { endProject } from "../../../store/erasures/deleted-projects.ts";
import { getProject, operatorProject } from "../../../store/projects/projects.ts";
import { accepted } from "../../routing/answer.ts";
import type { Configured } from "../../routing/parts.ts";
import { accountRoute, type Route } from "../../routing/route.ts";

const MAX_CONFIRM_CHARS = 128;

/** Returns the route that deletes a project with everything in it. */
export function senderDeletionRoute({ db }: Configured): Route {
  return accountRoute({
    method: "DELETE",
    path: "/v1/senders/:id",
    operationId: "deleteSender",
    scope: "data:delete",
    accountWide: true,
    summary: "Delete a project with everything in it",
    description:
      "It is gone at once: nothing more is sent, and its keys are revoked. Its messages, domains, inboxes, contacts and other rows go in steps. The project of the first start stays, because the service's own mail belongs to it. Requires an account-wide key.",
    query: Type.Object({
      confirm: Type.String({
        maxLength: MAX_CONFIRM_CHARS,
        description: "The project's `externalId`, so that no wrong id deletes a project.",
        examples: ["customer-42"],
      }),
    }),
    answers: { 202: Type.Object({ id: Type.String(), status: Type.Literal("deleting") }) },
    errors: ["not_found", "conflict"],
    async handle({ principal: { accountId }, params, query, now, record }) {
      const { id, externalId } = existing("project", await getProject(db, accountId, params.id));
      if (query.confirm !== externalId) throw invalid("confirm", "must be the project's externalId.");
      if (id === (await operatorProject(db)))
        throw new AppError(
          "conflict",
          "The service's own mail belongs to the project of the first start, so it cannot be deleted.",
          { code: "invalid_state" },
        );
      const answer = accepted({ id, status: "deleting" });
      await db.write([...endProject(accountId, id, now), ...record(answer)]);
      return answer;
    },
  });
}
