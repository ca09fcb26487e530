import { type Static, Type } from "@sinclair/typebox";
import { notFound, validationError, existing } from "../../../core/errors.ts";
import { entriesOf } from "../../../core/messages/address-input.ts";
import { decisiveFieldIssues } from "../../../core/messages/decisive-fields.ts";
import { SendItem } from "../../../core/messages/send-item.ts";
import { createKeyedMutex } from "../../../core/concurrency/keyed-mutex.ts";
import { prepareSend, sending } from "../../../flows/accept/accept.ts";
import { commitReply, composeReply, replyEntry, withoutDoubles } from "../../../flows/accept/reply.ts";
import type { Db } from "../../../store/engine/client.ts";
import { getInbox } from "../../../store/threads/inboxes.ts";
import { listThreads, type ThreadPage, type ThreadPosition } from "../../../store/threads/thread-list.ts";
import { updateThread } from "../../../store/threads/thread-changes.ts";
import { getThread, listThreadMessageIds, type Thread } from "../../../store/threads/threads.ts";
import { logAccepted } from "../../pipeline/request-log.ts";
import { accepted, ok } from "../../routing/answer.ts";
import type { Page } from "../../routing/paging.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { Nullable, PAGE_QUERY, PageOf, Search, showTime, Timestamp } from "../../routing/schemas.ts";
import { showConversation, ThreadMessageView } from "../../views/conversation.ts";
import { checkedSend } from "./checked-send.ts";
import type { LargeContents } from "../../../store/contents/large-reads.ts";
import type { Parts } from "../../routing/parts.ts";

/** Messages in the answer for a thread. Older ones are in its pages. */
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
    read: Type.Boolean({
      description: "False if a message has arrived since the thread was marked as read.",
    }),
    archived: Type.Boolean({
      description: "Archived threads are not listed unless asked for. New mail brings one back.",
    }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: "Thread" },
);

const InboxThreadsQuery = Type.Object({
  ...PAGE_QUERY,
  q: Search(
    "Part of the subject, a participant's address or the preview. Case does not matter. One page searches at most 100000 threads, so it may be short or empty although more follow.",
  ),
  unread: Type.Optional(
    Type.Boolean({ description: "If true, only unread threads; if false, only read ones." }),
  ),
  archived: Type.Optional(
    Type.Boolean({
      default: false,
      description: "If true, only archived threads; else only threads that are not archived.",
    }),
  ),
});

const ProjectThreadsQuery = Type.Object({
  ...InboxThreadsQuery.properties,
  inboxId: Type.Optional(
    Type.String({ description: "Only threads of this inbox.", examples: ["inb_01hzy8"] }),
  ),
});

type ThreadFilters = Pick<Static<typeof ProjectThreadsQuery>, "inboxId" | "q" | "unread" | "archived">;

const UpdateThread = Type.Object({
  read: Type.Optional(Type.Boolean({ description: "False marks the thread as unread again." })),
  archived: Type.Optional(Type.Boolean()),
});

const { text, html, cc, bcc, attachments, calendar, headers, tags } = SendItem.properties;
const ReplyBody = Type.Object({
  text,
  html,
  cc,
  bcc,
  attachments,
  calendar,
  headers,
  tags,
  replyAll: Type.Optional(
    Type.Boolean({ description: "Also replies to the other recipients of that message." }),
  ),
  messageId: Type.Optional(
    Type.String({
      description: "The message to reply to. If absent: the newest inbound message of the thread.",
      examples: ["msg_01hzy8"],
    }),
  ),
});
const REPLY_FIELDS: ReadonlySet<string> = new Set(Object.keys(ReplyBody.properties));
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

/** Returns the routes of threads: lists, reading and replying. */
export function threadRoutes(deps: Parts): Route[] {
  return [
    inboxThreadsRoute(deps),
    projectThreadsRoute(deps),
    getRoute(deps),
    updateRoute(deps),
    messagesRoute(deps),
    replyRoute(deps),
  ];
}

function inboxThreadsRoute({ db }: { db: Db }): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/inboxes/:id/threads",
    operationId: "listInboxThreads",
    scope: "threads:read",
    summary: "List the threads of an inbox, most recently active first",
    description: "Archived threads are left out unless asked for.",
    query: InboxThreadsQuery,
    answers: { 200: PageOf(ThreadSchema) },
    errors: ["not_found"],
    async handle({ senderId, params, query, page }) {
      return ok(await threadsPage(db, senderId, { ...query, inboxId: params.id }, page()));
    },
  });
}

function projectThreadsRoute({ db }: { db: Db }): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/threads",
    operationId: "listThreads",
    scope: "threads:read",
    summary: "List the threads of all inboxes, most recently active first",
    description: "Archived threads are left out unless asked for.",
    query: ProjectThreadsQuery,
    answers: { 200: PageOf(ThreadSchema) },
    errors: ["not_found"],
    async handle({ senderId, query, page }) {
      return ok(await threadsPage(db, senderId, query, page()));
    },
  });
}

/** @throws AppError 404 if the project has no such inbox */
async function threadsPage(
  db: Db,
  senderId: string,
  { inboxId, q, unread, archived }: ThreadFilters,
  page: Page,
) {
  if (inboxId !== undefined && (await getInbox(db, senderId, inboxId)) === null) throw notFound("inbox");
  const wanted: ThreadPage = {
    senderId,
    filter: { inboxId: inboxId ?? null, q: q ?? null, unread: unread ?? null, archived: archived ?? false },
    after: positionOf(page.after),
    limit: page.take,
  };
  const { threads, stoppedAt } = await listThreads(db, wanted);
  return page.answer(threads, show, textOf, stoppedAt === null ? null : textOf(stoppedAt));
}

function updateRoute({ db }: { db: Db }): Route {
  return projectRoute({
    method: "PATCH",
    path: "/v1/threads/:id",
    operationId: "updateThread",
    shows: "threads:read",
    scope: "threads:reply",
    summary: "Mark a thread as read or archived",
    description: "New mail makes a thread unread again and brings it back from the archive.",
    examples: { body: { read: true } },
    body: UpdateThread,
    answers: { 200: ThreadSchema },
    errors: ["not_found"],
    async handle({ senderId, params, body }) {
      return ok(show(existing("thread", await updateThread(db, senderId, params.id, body))));
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

function getRoute(deps: LargeContents): Route {
  const { db } = deps;
  return projectRoute({
    method: "GET",
    path: "/v1/threads/:id",
    operationId: "getThread",
    scope: "threads:read",
    summary: "Get a thread with its last 100 messages, oldest first",
    description: "Long bodies are shortened. Older messages are in `GET /v1/threads/{id}/messages`.",
    answers: {
      200: Type.Intersect([ThreadSchema, Type.Object({ messages: Type.Array(ThreadMessageView) })]),
    },
    errors: ["not_found"],
    async handle({ senderId, params }) {
      // Both reads run in one turn, so that the thread counts the messages that are shown.
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

function messagesRoute(deps: LargeContents): Route {
  const { db } = deps;
  return projectRoute({
    method: "GET",
    path: "/v1/threads/:id/messages",
    operationId: "listThreadMessages",
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

function replyRoute(deps: Parts): Route {
  // Replies to one thread run one after another, so that each counts those before it. Between processes, the commit
  // decides.
  const inTurn = createKeyedMutex();
  return projectRoute({
    method: "POST",
    path: "/v1/threads/:id/reply",
    operationId: "replyToThread",
    stores: { limitedBy: "handler" },
    scope: "threads:reply",
    summary: "Reply to a message of a thread",
    description:
      "Sends from the inbox's address to the sender of the message, in the same thread. `Re:`, `In-Reply-To` and `References` are set.",
    examples: { body: { text: "Thank you. It works now." } },
    body: ReplyBody,
    bodyLimit: "message",
    answers: { 202: Replied },
    errors: ["not_found", "conflict"],
    handle({ senderId, project, principal, params, body, now, record, requestId }) {
      const unknown = decisiveFieldIssues(body, REPLY_FIELDS);
      if (unknown.length > 0) throw validationError(unknown);
      return inTurn(params.id, () =>
        sending(async () => {
          const { item, ownHeaders } = await composeReply(deps, senderId, params.id, body, now);
          const checked = checkedSend(item, deps.limits, now, ownHeaders);
          const reply = { ...checked, item: withoutDoubles(checked.item, entriesOf(body.cc).length) };
          const entry = replyEntry(senderId, params.id, now);
          const prepared = await prepareSend(deps, project, principal, reply, { into: entry });
          const { id, status } = prepared.accepted;
          const answer = accepted({ id, status, threadId: params.id });
          await commitReply(deps, project, prepared, record(answer));
          logAccepted(requestId, [id]);
          return answer;
        }),
      );
    },
  });
}
