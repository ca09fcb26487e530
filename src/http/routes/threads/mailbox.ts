import { Type } from "@sinclair/typebox";
import type { Db } from "../../../store/engine/client.ts";
import { membersWhoSee } from "../../../store/projects/members.ts";
import { countLabels } from "../../../store/threads/thread-labels.ts";
import { ok } from "../../routing/answer.ts";
import { projectRoute, type Route } from "../../routing/route.ts";

/** Returns the route that says by what threads can be filtered, and whom they can be assigned to. */
export function mailboxRoute({ db }: { db: Db }): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/mailbox",
    operationId: "getMailbox",
    scope: "threads:read",
    summary: "Get the labels in use, and the members whom threads can be assigned to",
    description:
      "Counts the labels of the 5000 last active threads. A project's own key gets no members, because they belong to the account.",
    answers: {
      200: Type.Object(
        {
          labels: Type.Array(
            Type.Object({
              label: Type.String({ examples: ["billing"] }),
              threads: Type.Integer({ examples: [12] }),
            }),
            { description: "The most used first, at most 200." },
          ),
          members: Type.Array(
            Type.Object({
              id: Type.String({ examples: ["mem_01hzy8"] }),
              email: Type.String({ examples: ["ana@example.com"] }),
            }),
            { description: "By address. Without those who are disabled." },
          ),
        },
        { title: "Mailbox" },
      ),
    },
    async handle({ senderId, project, principal }) {
      const [labels, members] = await Promise.all([
        countLabels(db, senderId),
        principal.senderId === null ? membersWhoSee(db, project) : [],
      ]);
      return ok({ labels, members: members.map(({ id, email }) => ({ id, email })) });
    },
  });
}
