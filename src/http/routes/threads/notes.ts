import { type Static, Type } from "@sinclair/typebox";
import { existing, notFound } from "../../../core/errors.ts";
import { newId } from "../../../core/ids.ts";
import { currentAuthor } from "../../../core/threads/author.ts";
import { ConstraintError, type Db } from "../../../store/engine/client.ts";
import { tooManyRecords } from "../../../flows/quotas.ts";
import {
  deleteNote,
  insertNote,
  MAX_NOTE_CHARS,
  MAX_NOTES,
  type Note,
} from "../../../store/threads/notes.ts";
import { getThread } from "../../../store/threads/threads.ts";
import { created, noContent } from "../../routing/answer.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { showTime, Timestamp, WITHOUT_NUL } from "../../routing/schemas.ts";
import { AuthorView } from "../../views/author.ts";

export const NoteView = Type.Object(
  {
    id: Type.String({ examples: ["not_01hzy8"] }),
    author: AuthorView,
    text: Type.String({ examples: ["She called about it."] }),
    createdAt: Timestamp,
  },
  { title: "Note" },
);

/** Returns a note as the API shows it. */
export function showNote({ id, author, text, createdAt }: Note): Static<typeof NoteView> {
  return { id, author, text, createdAt: showTime(createdAt) };
}

/** Returns the routes of the notes of a thread. */
export function noteRoutes({ db }: { db: Db }): Route[] {
  return [addRoute(db), deleteRoute(db)];
}

function addRoute(db: Db): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/threads/:id/notes",
    operationId: "addNote",
    stores: {},
    shows: "threads:read",
    scope: "threads:reply",
    summary: "Add an internal note to a thread",
    description: `The team sees it in the conversation. It never leaves by mail. A thread has at most ${MAX_NOTES}.`,
    body: Type.Object(
      {
        text: Type.String({
          minLength: 1,
          maxLength: MAX_NOTE_CHARS,
          ...WITHOUT_NUL,
          examples: ["She called about it."],
        }),
      },
      { title: "NewNote" },
    ),
    answers: { 201: NoteView },
    errors: ["not_found"],
    async handle({ senderId, params, body, now, record }) {
      existing("thread", await getThread(db, senderId, params.id));
      const place = { id: newId("not", now), senderId, threadId: params.id };
      const note = { ...place, author: currentAuthor(), text: body.text.toWellFormed(), createdAt: now };
      const answer = created(showNote(note));
      await db.write([...insertNote(note), ...record(answer)]).catch(refused);
      return answer;
    },
  });
}

function refused(error: unknown): never {
  if (error instanceof ConstraintError && error.foreignKey) throw notFound("thread");
  return tooManyRecords(`A thread has at most ${MAX_NOTES} notes.`, "notes")(error);
}

function deleteRoute(db: Db): Route {
  return projectRoute({
    method: "DELETE",
    path: "/v1/threads/:id/notes/:noteId",
    operationId: "deleteNote",
    scope: "threads:reply",
    summary: "Delete an internal note",
    description: "The audit trail keeps that it was deleted, without its text.",
    answers: { 204: null },
    errors: ["not_found"],
    async handle({ senderId, params }) {
      if (!(await deleteNote(db, senderId, params.id, params.noteId))) throw notFound("note");
      return noContent();
    },
  });
}
