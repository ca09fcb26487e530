import { deleteMessage, deleteThread } from "../../../flows/sweep/delete-now.ts";
import type { DeletionDeps } from "../../../flows/sweep/delete-messages.ts";
import { noContent } from "../../routing/answer.ts";
import { projectRoute, type Route } from "../../routing/route.ts";

/** Returns the routes that delete messages and threads. */
export function deletionRoutes(deps: DeletionDeps): Route[] {
  return [
    projectRoute({
      method: "DELETE",
      path: "/v1/emails/:id",
      operationId: "deleteEmail",
      scope: "data:delete",
      summary: "Delete a message",
      description:
        "Its record, body, raw bytes, files, events, attempts and webhook log go. Figures stay. 409 while a recipient is still in progress: cancel a scheduled message first.",
      answers: { 204: null },
      errors: ["not_found", "conflict"],
      async handle({ senderId, params }) {
        await deleteMessage(deps, senderId, params.id);
        return noContent();
      },
    }),
    projectRoute({
      method: "DELETE",
      path: "/v1/threads/:id",
      operationId: "deleteThread",
      scope: "data:delete",
      summary: "Delete a thread with all of its messages",
      description: "409 while a recipient of one of its messages is still in progress.",
      answers: { 204: null },
      errors: ["not_found", "conflict"],
      async handle({ senderId, params }) {
        await deleteThread(deps, senderId, params.id);
        return noContent();
      },
    }),
  ];
}
