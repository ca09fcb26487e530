import { Type } from "@sinclair/typebox";
import { notFound } from "../../core/errors.ts";
import { SendItem } from "../../core/send-item.ts";
import { oneByOne } from "../../core/one-by-one.ts";
import { prepareSend, sending } from "../../flows/send/accept.ts";
import { commitReply, composeReply, replyEntry, withoutDoubles } from "../../flows/send/reply.ts";
import type { Db } from "../../store/engine/client.ts";
import type { RecordDeps } from "../../flows/read/record.ts";
import { getInbox } from "../../store/inboxes.ts";
import { listThreads, type ThreadPosition } from "../../store/thread-list.ts";
import { getThread, listThreadMessageIds, type Thread } from "../../store/threads.ts";
import { logAccepted } from "../access-log.ts";
import { accepted, ok } from "../answer.ts";
import { projectRoute, type Route } from "../route.ts";
import { Nullable, PAGE_QUERY, PageOf, Search, showTime, Timestamp } from "../schemas.ts";
import { showConversation, ThreadMessageView } from "../views/conversation.ts";
import { checkedSend, type EmailRouteDeps } from "./emails.ts";

/** Messages that a thread read at once shows; older ones are in its pages. */
const MESSAGES_SHOWN = 100;

const ThreadSchema = Type.Object(
  {
    id: Type.String(),
    inboxId: Type.String(),
    senderId: Type.String(),
    subject: Type.String(),
    preview: Type.String({ description: "First characters of the last message." }),
    participants: Type.Array(Type.String()),
    messageCount: Type.Integer(),
    hasAttachments: Type.Boolean(),
    lastMessageId: Nullable(Type.String()),
    lastMessageAt: Timestamp,
    lastInboundAt: Nullable(Timestamp),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: "Thread" },
);

const ListQuery = Type.Object({
  ...PAGE_QUERY,
  q: Search(
    "A part of the subject, of a participant's address or of the preview, in any case. A page looks at 100000 threads at most, so it may be short, or empty, with more to come.",
  ),
});

const { text, html, cc, bcc, attachments, headers, tags } = SendItem.properties;
const ReplyBody = Type.Object({
  text,
  html,
  cc,
  bcc,
  attachments,
  headers,
  tags,
  replyAll: Type.Optional(Type.Boolean({ description: "Also to everybody else of the message replied to." })),
  messageId: Type.Optional(
    Type.String({
      description: "The message replied to; the last inbound one of the thread where none is named.",
    }),
  ),
});
const Replied = Type.Object({ id: Type.String(), status: Type.String(), threadId: Type.String() });

function show(thread: Thread): Record<string, unknown> {
  return {
    ...thread,
    lastMessageAt: showTime(thread.lastMessageAt),
    lastInboundAt: showTime(thread.lastInboundAt),
    createdAt: showTime(thread.createdAt),
    updatedAt: showTime(thread.updatedAt),
  };
}

/** Threads of inboxes: lists, reading, replying. */
export function threadRoutes(deps: EmailRouteDeps): Route[] {
  return [listRoute(deps), getRoute(deps), messagesRoute(deps), replyRoute(deps)];
}

function listRoute({ db }: { db: Db }): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/inboxes/:id/threads",
    operationId: "listThreads",
    scope: "threads:read",
    summary: "List an inbox's threads, last active first",
    query: ListQuery,
    answers: { 200: PageOf(ThreadSchema) },
    errors: ["not_found"],
    async handle({ senderId, params, query, page: openedPage }) {
      const page = openedPage();
      const inbox = await getInbox(db, senderId, params.id);
      if (inbox === null) throw notFound("inbox");
      const wanted = { q: query.q ?? null, after: positionOf(page.after), limit: page.take };
      const { threads, stoppedAt } = await listThreads(db, { senderId, inboxId: inbox.id, ...wanted });
      return ok(page.answer(threads, show, textOf, stoppedAt === null ? null : textOf(stoppedAt)));
    },
  });
}

function textOf({ lastMessageAt, id }: ThreadPosition): string {
  return `${lastMessageAt} ${id}`;
}

function positionOf(text: string | null): ThreadPosition | null {
  if (text === null) return null;
  const [at = "", id = ""] = text.split(" ");
  return { lastMessageAt: Number(at), id };
}

function getRoute(deps: RecordDeps): Route {
  const { db } = deps;
  return projectRoute({
    method: "GET",
    path: "/v1/threads/:id",
    operationId: "getThread",
    scope: "threads:read",
    summary: "Read a thread with its last 100 messages, oldest first",
    answers: {
      200: Type.Intersect([ThreadSchema, Type.Object({ messages: Type.Array(ThreadMessageView) })]),
    },
    errors: ["not_found"],
    async handle({ senderId, params }) {
      // In one turn, so that the thread counts the messages that are shown.
      const [thread, ids] = await Promise.all([
        getThread(db, senderId, params.id),
        listThreadMessageIds(db, senderId, params.id, null, MESSAGES_SHOWN),
      ]);
      if (thread === null) throw notFound("thread");
      const messages = await showConversation(deps, senderId, ids);
      return ok({ ...show(thread), messages: messages.reverse() });
    },
  });
}

function messagesRoute(deps: RecordDeps): Route {
  const { db } = deps;
  return projectRoute({
    method: "GET",
    path: "/v1/threads/:id/messages",
    operationId: "listThreadMessages",
    scope: "threads:read",
    summary: "List a thread's messages, newest first",
    query: Type.Object(PAGE_QUERY),
    answers: { 200: PageOf(ThreadMessageView) },
    errors: ["not_found"],
    async handle({ senderId, params, page: openedPage }) {
      const page = openedPage();
      const thread = await getThread(db, senderId, params.id);
      if (thread === null) throw notFound("thread");
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

function replyRoute(deps: EmailRouteDeps): Route {
  // Of a thread's replies at the same time each counts those before it. Between processes the commit decides.
  const inTurn = oneByOne();
  return projectRoute({
    method: "POST",
    path: "/v1/threads/:id/reply",
    operationId: "replyToThread",
    scope: "threads:reply",
    summary: "Answer a message of a thread from its inbox",
    body: ReplyBody,
    answers: { 202: Replied },
    errors: ["not_found", "conflict"],
    handle: ({ senderId, project, params, body, now, record, requestId }) =>
      inTurn(params.id, () =>
        sending(async () => {
          const { item, ownHeaders } = await composeReply(deps, senderId, params.id, body, now);
          const checked = checkedSend(item, deps.limits, now, ownHeaders);
          const reply = { ...checked, item: withoutDoubles(checked.item, body.cc?.length ?? 0) };
          const entry = replyEntry(senderId, params.id, now);
          const prepared = await prepareSend(deps, project, reply, { into: entry });
          const { id, status } = prepared.accepted;
          const answer = accepted({ id, status, threadId: params.id });
          await commitReply(deps, project, prepared, record(answer));
          logAccepted(requestId, [id]);
          return answer;
        }),
      ),
  });
}
