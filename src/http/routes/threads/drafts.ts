import { type Static, Type } from "@sinclair/typebox";
import { AppError, existing, notFound, validationError } from "../../../core/errors.ts";
import { newId } from "../../../core/ids.ts";
import { currentAuthor } from "../../../core/threads/author.ts";
import { DraftItem, draftFields, draftIssues } from "../../../core/threads/draft.ts";
import { ConstraintError, type Db } from "../../../store/engine/client.ts";
import { tooManyRecords } from "../../../flows/quotas.ts";
import {
  deleteDraft,
  type Draft,
  getDraft,
  insertDraft,
  listDrafts,
  MAX_DRAFTS,
  replaceDraft,
} from "../../../store/drafts/drafts.ts";
import { getThread } from "../../../store/threads/threads.ts";
import { exampleId } from "../../openapi/examples.ts";
import { created, noContent, ok } from "../../routing/answer.ts";
import type { Parts } from "../../routing/parts.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { OneOf, PAGE_QUERY, PageOf } from "../../routing/schemas.ts";
import { DraftSummaryView, DraftView, showDraft, showDraftSummary } from "../../views/draft.ts";
import type { SendReply } from "./replies.ts";
import { sendDraftRoute } from "./send-draft.ts";

const NewDraft = Type.Object(
  {
    ...DraftItem.properties,
    threadId: Type.Optional(
      Type.String({
        description:
          "Makes it a reply in this thread, which decides about `from` and, if absent, `to` and `subject`.",
        examples: ["thr_01hzy8"],
      }),
    ),
  },
  { title: "NewDraft" },
);
const DraftFields = Type.Object(
  {
    ...DraftItem.properties,
    version: Type.Optional(
      Type.Integer({
        minimum: 1,
        examples: [1],
        description: "Of the draft that you read. If it has changed since, the answer is 409.",
      }),
    ),
  },
  { title: "DraftFields" },
);
const EXAMPLE = { from: "ana@example.com", to: "ben@example.com", subject: "Hello", text: "Hi Ben" };
const SAVED = {
  ...EXAMPLE,
  id: exampleId("drf"),
  threadId: null,
  author: { type: "key", id: exampleId("key"), name: "agent" },
  version: 1,
  createdAt: "2026-01-31T09:30:00.000Z",
  updatedAt: "2026-01-31T09:30:00.000Z",
};

/** @throws AppError 422 for a field that the draft cannot have */
function checkFields(body: DraftItem, inThread: boolean): void {
  const issues = draftIssues(body, inThread);
  if (issues.length > 0) throw validationError(issues);
}

/** Returns the routes of `/v1/drafts`. */
export function draftRoutes(deps: Parts, sendReply: SendReply): Route[] {
  return [
    createRoute(deps),
    listRoute(deps),
    getRoute(deps),
    replaceRoute(deps),
    deleteRoute(deps),
    sendDraftRoute(deps, sendReply),
  ];
}

function createRoute({ db }: { db: Db }): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/drafts",
    operationId: "createDraft",
    stores: {},
    scope: "drafts:write",
    summary: "Save a draft, which a person can read and send",
    description: `Takes the fields of a send as far as they are written. A key with \`drafts:write\` and without \`emails:send\` can only propose. A project has at most ${MAX_DRAFTS} drafts, each of at most 1 MiB.`,
    examples: { body: EXAMPLE, answer: SAVED },
    body: NewDraft,
    seesAllFields: true,
    rules: (body: Static<typeof NewDraft>) => checkFields(body, body.threadId !== undefined),
    answers: { 201: DraftView },
    errors: ["not_found"],
    async handle({ senderId, body, now, record }) {
      const { threadId = null } = body;
      checkFields(body, threadId !== null);
      if (threadId !== null) existing("thread", await getThread(db, senderId, threadId));
      const draft: Draft = {
        id: newId("drf", now),
        senderId,
        threadId,
        author: currentAuthor(),
        item: draftFields(body),
        version: 1,
        createdAt: now,
        updatedAt: now,
      };
      const answer = created(showDraft(draft));
      await db.write([...insertDraft(draft), ...record(answer)]).catch(refused);
      return answer;
    },
  });
}

function refused(error: unknown): never {
  if (error instanceof ConstraintError && error.foreignKey) throw notFound("thread");
  return tooManyRecords(`A project has at most ${MAX_DRAFTS} drafts.`, "drafts")(error);
}

function listRoute({ db }: { db: Db }): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/drafts",
    operationId: "listDrafts",
    scope: "drafts:write",
    summary: "List drafts, newest first",
    description: "Without their bodies and files.",
    query: Type.Object({
      ...PAGE_QUERY,
      threadId: Type.Optional(
        Type.String({ description: "Only drafts of this thread.", examples: ["thr_01hzy8"] }),
      ),
      inboxId: Type.Optional(
        Type.String({ description: "Only replies from this inbox.", examples: ["inb_01hzy8"] }),
      ),
      authorId: Type.Optional(
        Type.String({ description: "Only drafts of this member or key.", examples: ["key_01hzy8"] }),
      ),
      authorType: Type.Optional(
        OneOf(["member", "key"], "`key`: only what programs propose. `member`: only what people write."),
      ),
    }),
    answers: { 200: PageOf(DraftSummaryView) },
    async handle({ senderId, query, page }) {
      const { after, take, answer } = page();
      const { threadId = null, inboxId = null, authorId = null, authorType = null } = query;
      const filter = { threadId, inboxId, authorId, authorType };
      const drafts = await listDrafts(db, senderId, { ...filter, after, take });
      return ok(answer(drafts, showDraftSummary, ({ id }) => id));
    },
  });
}

function getRoute({ db }: { db: Db }): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/drafts/:id",
    operationId: "getDraft",
    scope: "drafts:write",
    summary: "Get a draft",
    description: "With all fields that are written.",
    examples: { answer: SAVED },
    answers: { 200: DraftView },
    errors: ["not_found"],
    async handle({ senderId, params }) {
      return ok(showDraft(existing("draft", await getDraft(db, senderId, params.id))));
    },
  });
}

function replaceRoute({ db }: { db: Db }): Route {
  return projectRoute({
    method: "PUT",
    path: "/v1/drafts/:id",
    operationId: "replaceDraft",
    stores: { limitedBy: "handler" },
    scope: "drafts:write",
    summary: "Replace the fields of a draft",
    description:
      "Fields that are absent are removed. Its thread stays. With `version`, a change by someone else is not overwritten.",
    examples: { body: EXAMPLE, answer: SAVED },
    body: DraftFields,
    seesAllFields: true,
    answers: { 200: DraftView },
    errors: ["not_found", "conflict"],
    async handle({ senderId, params, body, now, growing }) {
      const { version, ...item } = body;
      const before = existing("draft", await getDraft(db, senderId, params.id));
      checkFields(item, before.threadId !== null);
      if (version !== undefined && version !== before.version) throw changedSince();
      const after = await replaceDraft(db, before, { item: draftFields(item), updatedAt: now }, growing);
      if (after === null) throw changedSince();
      return ok(showDraft(after));
    },
  });
}

function changedSince(): AppError {
  return new AppError("conflict", "Another request has changed or sent this draft since it was read.", {
    code: "invalid_state",
  });
}

function deleteRoute({ db }: { db: Db }): Route {
  return projectRoute({
    method: "DELETE",
    path: "/v1/drafts/:id",
    operationId: "deleteDraft",
    scope: "drafts:write",
    summary: "Delete a draft",
    description: "Nothing is sent, and nobody is told.",
    answers: { 204: null },
    errors: ["not_found"],
    async handle({ senderId, params }) {
      if (!(await deleteDraft(db, senderId, params.id))) throw notFound("draft");
      return noContent();
    },
  });
}
