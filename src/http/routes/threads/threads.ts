import { Type } from "@sinclair/typebox";
import { existing, notFound } from "../../../core/errors.ts";
import type { LargeContents } from "../../../store/contents/large-reads.ts";
import { notesOf } from "../../../store/threads/notes.ts";
import { getThread, listThreadMessageIds } from "../../../store/threads/threads.ts";
import { ok } from "../../routing/answer.ts";
import type { Parts } from "../../routing/parts.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { PAGE_QUERY, PageOf } from "../../routing/schemas.ts";
import { showConversation, ThreadMessageView } from "../../views/conversation.ts";
import { showOneThread, ThreadSchema } from "../../views/thread.ts";
import { draftRoutes } from "./drafts.ts";
import { mailboxRoute } from "./mailbox.ts";
import { noteRoutes, NoteView, showNote } from "./notes.ts";
import { replies, replyRoute } from "./replies.ts";
import { threadChangeRoute } from "./thread-changes.ts";
import { threadListRoutes } from "./thread-lists.ts";

/** Messages in the answer for a thread. Older ones are in its pages. */
const MESSAGES_SHOWN = 100;

/** Returns the routes of threads: lists, reading, replying and drafts. */
export function threadRoutes(deps: Parts): Route[] {
  const sendReply = replies(deps);
  return [
    ...threadListRoutes(deps),
    mailboxRoute(deps),
    getRoute(deps),
    threadChangeRoute(deps),
    messagesRoute(deps),
    replyRoute(sendReply),
    ...draftRoutes(deps, sendReply),
    ...noteRoutes(deps),
  ];
}

function getRoute(deps: LargeContents): Route {
  const { db } = deps;
  return projectRoute({
    method: "GET",
    path: "/v1/threads/:id",
    operationId: "getThread",
    inboxes: "thread",
    scope: "threads:read",
    summary: "Get a thread with its last 100 messages, oldest first, and its notes",
    description: "Long bodies are shortened. Older messages are in `GET /v1/threads/{id}/messages`.",
    answers: {
      200: Type.Intersect([
        ThreadSchema,
        Type.Object({
          messages: Type.Array(ThreadMessageView),
          notes: Type.Array(NoteView, { description: "Internal notes, oldest first." }),
        }),
      ]),
    },
    errors: ["not_found"],
    async handle({ senderId, params }) {
      // All reads run in one turn, so that the thread counts the messages that are shown.
      const [thread, ids, notes] = await Promise.all([
        getThread(db, senderId, params.id),
        listThreadMessageIds(db, senderId, params.id, null, MESSAGES_SHOWN),
        notesOf(db, senderId, params.id),
      ]);
      if (thread === null) throw notFound("thread");
      const messages = await showConversation(deps, senderId, ids);
      return ok({
        ...(await showOneThread(db, senderId, thread)),
        messages: messages.reverse(),
        notes: notes.map(showNote),
      });
    },
  });
}

function messagesRoute(deps: LargeContents): Route {
  const { db } = deps;
  return projectRoute({
    method: "GET",
    path: "/v1/threads/:id/messages",
    operationId: "listThreadMessages",
    inboxes: "thread",
    scope: "threads:read",
    summary: "List a thread's messages, newest first",
    description: "Long bodies are shortened. The record of a message has all of it, and its links and codes.",
    query: Type.Object(PAGE_QUERY),
    answers: { 200: PageOf(ThreadMessageView) },
    errors: ["not_found"],
    async handle({ senderId, params, page: openedPage }) {
      const page = openedPage();
      const thread = existing("thread", await getThread(db, senderId, params.id));
      const ids = await listThreadMessageIds(db, senderId, thread.id, page.after, page.take);
      const { data, nextCursor } = page.answer(
        ids,
        (id) => id,
        (id) => id,
      );
      return ok({ data: await showConversation(deps, senderId, data), nextCursor });
    },
  });
}
