import { withinInboxes } from "../../../core/key-bounds.ts";
import { invalid } from "../../../core/errors.ts";
import { type Static, Type } from "@sinclair/typebox";
import { FOLDERS, MAX_LABEL_CHARS, UNASSIGNED } from "../../../core/messages/mailbox.ts";
import { notFound } from "../../../core/errors.ts";
import {
  findThreads,
  type FoundThread,
  type ThreadPlace,
  type ThreadSearch,
} from "../../../flows/search/find-threads.ts";
import type { Contents } from "../../../store/contents/content-read.ts";
import { textQuery } from "../../../store/search/text-query.ts";
import { getInbox } from "../../../store/threads/inboxes.ts";
import { type NamedThread, withNames } from "../../../store/threads/participant-names.ts";
import { listThreads, type ThreadPage, type ThreadPosition } from "../../../store/threads/thread-list.ts";
import { ok } from "../../routing/answer.ts";
import type { Page } from "../../routing/paging.ts";
import type { Parts } from "../../routing/parts.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { MAX_ID_CHARS, ONE_LINE, OneOf, PAGE_QUERY, Search } from "../../routing/schemas.ts";
import {
  FoundPageOf,
  Highlights,
  indexedSince,
  openPlaces,
  sealPlaces,
  TextSearch,
} from "../../views/highlights.ts";
import { showThread, ThreadSchema } from "../../views/thread.ts";

const InboxThreadsQuery = Type.Object({
  ...PAGE_QUERY,
  q: Search(
    "Part of the subject, a participant's address or the preview. Case does not matter. One page searches at most 100000 threads, so it may be short or empty although more follow.",
  ),
  text: TextSearch,
  unread: Type.Optional(
    Type.Boolean({ description: "If true, only unread threads; if false, only read ones." }),
  ),
  archived: Type.Optional(
    Type.Boolean({
      description:
        "If true, only archived threads; if false, only others. If absent: those of the inbox that are not archived, and all of another folder.",
    }),
  ),
  folder: Type.Optional(OneOf(FOLDERS, "`inbox` if absent.")),
  label: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_LABEL_CHARS,
      ...ONE_LINE,
      description: "Only threads with this label, spelled exactly so.",
      examples: ["billing"],
    }),
  ),
  assignee: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_ID_CHARS,
      ...ONE_LINE,
      description: `Only threads of this member; \`${UNASSIGNED}\`: those that nobody has.`,
      examples: ["mem_01hzy8"],
    }),
  ),
});

const ProjectThreadsQuery = Type.Object({
  ...InboxThreadsQuery.properties,
  inboxId: Type.Optional(
    Type.String({ description: "Only threads of this inbox.", examples: ["inb_01hzy8"] }),
  ),
});

type ThreadFilters = Omit<Static<typeof ProjectThreadsQuery>, "limit" | "cursor">;

const ListedThread = Type.Object(
  {
    ...ThreadSchema.properties,
    matchedMessageId: Type.Optional(
      Type.String({
        description: "The newest message with the words of `text`. Absent without `text`.",
      }),
    ),
    highlights: Highlights,
  },
  { title: "ListedThread" },
);
const DESCRIPTION =
  "Archived threads are left out unless asked for. With `text`, threads are in the order of their newest message that has the words.";

type ThreadListDeps = Contents & Pick<Parts, "fileKey">;

/** Returns the routes that list threads. */
export function threadListRoutes(deps: ThreadListDeps): Route[] {
  return [inboxThreadsRoute(deps), projectThreadsRoute(deps)];
}

function inboxThreadsRoute(deps: ThreadListDeps): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/inboxes/:id/threads",
    operationId: "listInboxThreads",
    inboxes: "inbox",
    scope: "threads:read",
    summary: "List the threads of an inbox, most recently active first",
    description: DESCRIPTION,
    query: InboxThreadsQuery,
    answers: { 200: FoundPageOf(ListedThread) },
    errors: ["not_found"],
    async handle({ senderId, params, query, page }) {
      return ok(await threadsPage(deps, senderId, { ...query, inboxId: params.id }, page()));
    },
  });
}

function projectThreadsRoute(deps: ThreadListDeps): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/threads",
    operationId: "listThreads",
    inboxes: "handler",
    scope: "threads:read",
    summary: "List the threads of all inboxes, most recently active first",
    description: DESCRIPTION,
    query: ProjectThreadsQuery,
    answers: { 200: FoundPageOf(ListedThread) },
    errors: ["not_found"],
    async handle({ senderId, principal: { bounds }, query, page }) {
      if (bounds.inboxIds !== null && !withinInboxes(bounds, query.inboxId ?? ""))
        throw invalid("inboxId", "is required with this key, and must be one of its inboxes.");
      return ok(await threadsPage(deps, senderId, query, page()));
    },
  });
}

/** @throws AppError 404 if the project has no such inbox */
async function threadsPage(
  deps: ThreadListDeps,
  senderId: string,
  { inboxId, q, text, unread, archived, folder = "inbox", label, assignee }: ThreadFilters,
  page: Page,
) {
  const { db } = deps;
  if (inboxId !== undefined && (await getInbox(db, senderId, inboxId)) === null) throw notFound("inbox");
  const wanted: ThreadPage = {
    senderId,
    filter: {
      inboxId: inboxId ?? null,
      q: q ?? null,
      unread: unread ?? null,
      archived: archived ?? (folder === "inbox" ? false : null),
      folder,
      label: label ?? null,
      assigneeId: assignee ?? null,
    },
    after: positionOf(page.after),
    limit: page.take,
  };
  if (text !== undefined) return foundPage(deps, { ...wanted, query: textQuery(text) }, page);
  const { threads, stoppedAt } = await listThreads(db, wanted);
  return page.answer(
    await withNames(db, senderId, threads),
    showThread,
    textOf,
    stoppedAt === null ? null : textOf(stoppedAt),
  );
}

/** A cursor holds a place in the index. */
async function foundPage(deps: ThreadListDeps, search: ThreadSearch, page: Page) {
  const [begun, from] = openPlaces(deps.fileKey, page.after) ?? [];
  const place = begun === undefined || from === undefined ? null : { begun, from };
  const { threads: found, stoppedAt } = await findThreads(deps, search, place, page.take);
  const named = await withNames(
    deps.db,
    search.senderId,
    found.map(({ thread }) => thread),
  );
  const threads = named.flatMap((thread, at) => (found[at] === undefined ? [] : [{ ...found[at], thread }]));
  const cursorOf = (at: ThreadPlace): string => sealPlaces(deps.fileKey, [at.begun, at.from]);
  const show = ({ thread, messageId, highlights }: FoundThread & { thread: NamedThread }) => ({
    ...showThread(thread),
    matchedMessageId: messageId,
    highlights,
  });
  const stopped = stoppedAt === null ? null : cursorOf(stoppedAt);
  return {
    ...page.answer(threads, show, ({ next }) => cursorOf(next), stopped),
    ...(await indexedSince(deps.db)),
  };
}

function textOf({ lastMessageAt, id }: ThreadPosition): string {
  return `${lastMessageAt} ${id}`;
}

function positionOf(text: string | null): ThreadPosition | null {
  if (text === null) return null;
  const [at = "", id = ""] = text.split(" ");
  return { lastMessageAt: Number(at), id };
}
