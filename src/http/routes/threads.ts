import { Type } from "@sinclair/typebox";
import { AppError, notFound } from "../../core/errors.ts";
import { SendItem } from "../../core/send-item.ts";
import { readRecord } from "../../flows/read/record.ts";
import { commitSend, prepareSend } from "../../flows/send/accept.ts";
import { composeReply } from "../../flows/send/reply.ts";
import type { Db } from "../../store/client.ts";
import { getInbox } from "../../store/inboxes.ts";
import {
  getThread,
  listThreadMessageIds,
  listThreads,
  type Thread,
  type ThreadPosition,
} from "../../store/threads.ts";
import { accepted, ok } from "../answer.ts";
import { projectRoute, type Route } from "../route.ts";
import { Nullable, PAGE_QUERY, PageOf, showTime, Timestamp } from "../schemas.ts";
import { MessageView, showMessage } from "../views/message.ts";
import { checkedSend, type EmailRouteDeps } from "./emails.ts";

/** Messages that a thread read at once shows; older ones are in its pages. */
const MESSAGES_SHOWN = 100;

const ThreadSchema = Type.Object({
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
    query: Type.Object(PAGE_QUERY),
    answers: { 200: PageOf(ThreadSchema) },
    errors: ["not_found"],
    async handle({ senderId, params, page: openedPage }) {
      const page = openedPage();
      const inbox = await getInbox(db, senderId, params.id);
      if (inbox === null) throw notFound("inbox");
      const rows = await listThreads(db, senderId, inbox.id, positionOf(page.after), page.take);
      return ok(page.answer(rows, show, (row) => `${row.lastMessageAt} ${row.id}`));
    },
  });
}

function positionOf(text: string | null): ThreadPosition | null {
  if (text === null) return null;
  const [at = "", id = ""] = text.split(" ");
  return { lastMessageAt: Number(at), id };
}

function getRoute({ db }: { db: Db }): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/threads/:id",
    operationId: "getThread",
    scope: "threads:read",
    summary: "Read a thread with its last 100 messages, oldest first",
    answers: { 200: Type.Intersect([ThreadSchema, Type.Object({ messages: Type.Array(MessageView) })]) },
    errors: ["not_found"],
    async handle({ senderId, params }) {
      const thread = await getThread(db, senderId, params.id);
      if (thread === null) throw notFound("thread");
      const ids = await listThreadMessageIds(db, senderId, thread.id, null, MESSAGES_SHOWN);
      const messages = await readAll(db, senderId, ids.reverse());
      return ok({ ...show(thread), messages });
    },
  });
}

function messagesRoute({ db }: { db: Db }): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/threads/:id/messages",
    operationId: "listThreadMessages",
    scope: "threads:read",
    summary: "List a thread's messages, newest first",
    query: Type.Object(PAGE_QUERY),
    answers: { 200: PageOf(MessageView) },
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
      return ok({ data: await readAll(db, senderId, data), nextCursor });
    },
  });
}

async function readAll(db: Db, senderId: string, ids: readonly string[]): Promise<Record<string, unknown>[]> {
  const records = await Promise.all(ids.map((id) => readRecord(db, senderId, id)));
  return records.flatMap((record) => (record === null ? [] : [showMessage(record)]));
}

function replyRoute(deps: EmailRouteDeps): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/threads/:id/reply",
    operationId: "replyToThread",
    scope: "threads:reply",
    summary: "Answer a message of a thread from its inbox",
    body: ReplyBody,
    answers: { 202: Replied },
    errors: ["not_found"],
    async handle({ senderId, project, params, body, now, record }) {
      const item = await composeReply(deps, senderId, params.id, body, now);
      if (item.to.length === 0)
        throw new AppError("conflict", "The message replied to names nobody to answer.");
      const prepared = await prepareSend(deps, project, checkedSend(item, deps.limits, now), params.id);
      const { id, status } = prepared.accepted;
      const answer = accepted({ id, status, threadId: params.id });
      await commitSend(deps, project, prepared, record(answer));
      return answer;
    },
  });
}
