import { type Static, Type } from "@sinclair/typebox";
import { existing, invalid } from "../../../core/errors.ts";
import { folderEnd, MAX_SNOOZE_MS, requireDistinct } from "../../../core/messages/mailbox.ts";
import { parseTime } from "../../../core/time/date-times.ts";
import { requireAssignable } from "../../../flows/threads/assignee.ts";
import type { Db } from "../../../store/engine/client.ts";
import { type FolderPlace, updateThread } from "../../../store/threads/thread-changes.ts";
import { ok } from "../../routing/answer.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { MAX_ID_CHARS, Nullable, OneOf, TIME } from "../../routing/schemas.ts";
import { Labels, showOneThread, ThreadSchema } from "../../views/thread.ts";

const UpdateThread = Type.Object(
  {
    read: Type.Optional(Type.Boolean({ description: "False marks the thread as unread again." })),
    archived: Type.Optional(Type.Boolean()),
    labels: Type.Optional(Labels("All labels that the thread has then.")),
    assigneeId: Type.Optional(
      Nullable(
        Type.String({
          maxLength: MAX_ID_CHARS,
          description: "A member who may see the project; null: nobody.",
          examples: ["mem_01hzy8"],
        }),
      ),
    ),
    folder: Type.Optional(
      OneOf(
        ["inbox", "spam", "trash"],
        "What is put into `spam` or `trash` is deleted after 30 days. To snooze, give `snoozedUntil`.",
      ),
    ),
    snoozedUntil: Type.Optional(
      Nullable(
        Type.String({
          ...TIME,
          description:
            "Hides the thread in `snoozed` until this time, and it then comes back as unread, earlier if an answer arrives. At most 366 days ahead. Null brings it back now.",
        }),
      ),
    ),
  },
  { title: "ThreadChanges" },
);

/** Returns the route that changes a thread. */
export function threadChangeRoute({ db }: { db: Db }): Route {
  return projectRoute({
    method: "PATCH",
    path: "/v1/threads/:id",
    operationId: "updateThread",
    inboxes: "thread",
    shows: "threads:read",
    scope: "threads:reply",
    summary: "Mark, label, assign or move a thread",
    description:
      "Fields that are absent stay as they are. New mail makes a thread unread, and brings it back from the archive, from a snooze and from the trash.",
    examples: { body: { read: true, labels: ["billing"] } },
    rules: ({ labels, folder, snoozedUntil }: Static<typeof UpdateThread>, now: number) => {
      requireDistinct("labels", labels);
      placeOf({ folder, snoozedUntil }, now);
    },
    body: UpdateThread,
    answers: { 200: ThreadSchema },
    errors: ["not_found"],
    async handle({ senderId, project, params, body, now }) {
      const { read, archived, labels, assigneeId } = body;
      requireDistinct("labels", labels);
      if (assigneeId != null) await requireAssignable(db, project, assigneeId);
      const changes = { read, archived, labels, assigneeId, place: placeOf(body, now) };
      return ok(
        await showOneThread(
          db,
          senderId,
          existing("thread", await updateThread(db, senderId, params.id, changes)),
        ),
      );
    },
  });
}

/**
 * Returns the place that a change asks for; undefined if it asks for none.
 * @throws AppError 422 if it asks for two, or snoozes to a time that is not ahead or too far
 */
function placeOf(
  { folder, snoozedUntil }: Pick<Static<typeof UpdateThread>, "folder" | "snoozedUntil">,
  now: number,
): FolderPlace | undefined {
  if (snoozedUntil == null) {
    const moved = folder ?? (snoozedUntil === null ? "inbox" : undefined);
    return moved === undefined ? undefined : { folder: moved, until: folderEnd(moved, now) };
  }
  if (folder !== undefined)
    throw invalid("snoozedUntil", "must be left out together with folder: a thread is in one place.");
  const until = parseTime(snoozedUntil);
  if (until === null || until <= now)
    throw invalid("snoozedUntil", "must be an ISO 8601 date-time with a zone, ahead of now.");
  if (until > now + MAX_SNOOZE_MS) throw invalid("snoozedUntil", "must be at most 366 days ahead.");
  return { folder: "snoozed", until };
}
