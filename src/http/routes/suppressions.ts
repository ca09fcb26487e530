import { exampleId } from "../openapi/examples.ts";
import { type Static, Type } from "@sinclair/typebox";
import { addressKey, ADDRESS_EXPECTED, keyOfAddress } from "../../core/addresses.ts";
import type { AppError } from "../../core/errors.ts";
import {
  addSuppressions,
  fieldsOf,
  type Listed,
  manual,
  MAX_BATCH,
  type SuppressionDeps,
} from "../../flows/projects/suppressions.ts";
import type { Db } from "../../store/engine/client.ts";
import {
  listSuppressions,
  removeSuppression,
  SUPPRESSION_REASONS,
  type Suppression,
} from "../../store/projects/suppressions.ts";
import { created, multiStatus, noContent, ok } from "../routing/answer.ts";
import type { Parts } from "../routing/parts.ts";
import { projectRoute, type Route } from "../routing/route.ts";
import {
  EMAIL,
  ItemError,
  Nullable,
  OneOf,
  PAGE_QUERY,
  PageOf,
  Search,
  showTime,
  FUTURE_TIME,
  Timestamp,
  WITHOUT_NUL,
} from "../routing/schemas.ts";
import { AS_CSV, pageOrWhole } from "../routing/whole-list.ts";

const MAX_NOTE_CHARS = 1000;
const SuppressionSchema = Type.Object(
  {
    id: Type.String(),
    email: Type.String({ description: "The address in lower case." }),
    reason: OneOf(SUPPRESSION_REASONS),
    bounceType: Nullable(OneOf(["hard", "soft"])),
    messageId: Nullable(Type.String({ description: "The message that bounced or was complained about." })),
    note: Nullable(Type.String()),
    expiresAt: Nullable(Timestamp),
    createdAt: Timestamp,
  },
  { title: "Suppression" },
);

const ListQuery = Type.Object({
  ...PAGE_QUERY,
  email: Type.Optional(Type.String({ ...EMAIL, description: "Only this address. Case does not matter." })),
  reason: Type.Optional(OneOf(SUPPRESSION_REASONS)),
  q: Search("Part of the address. Case does not matter."),
});

const Note = Type.String({ maxLength: MAX_NOTE_CHARS, ...WITHOUT_NUL, examples: ["asked by phone"] });
const AddSuppression = Type.Object({
  email: Type.String(EMAIL),
  note: Type.Optional(Nullable(Note)),
  expiresAt: Type.Optional(
    Nullable(Type.String({ ...FUTURE_TIME, description: "When the entry ends. Null: never." })),
  ),
});

const BatchResult = Type.Object({
  data: Type.Array(
    Type.Object({
      id: Type.Optional(Type.String({ description: "Present if the address is on the list." })),
      email: Type.Optional(Type.String()),
      error: Type.Optional(ItemError),
    }),
    { description: "One result per address, in the same order." },
  ),
});

/** Returns an entry as the API shows it. */
export function showSuppression(suppression: Suppression): Static<typeof SuppressionSchema> {
  const { id, email, reason, bounceType, messageId, note, expiresAt, createdAt } = suppression;
  return {
    id,
    email,
    reason,
    bounceType,
    messageId,
    note,
    expiresAt: showTime(expiresAt),
    createdAt: showTime(createdAt),
  };
}

/** Returns the routes of `/v1/suppressions`. */
export function suppressionRoutes(deps: SuppressionDeps & Pick<Parts, "handOut">): Route[] {
  return [listRoute(deps), addRoute(deps), batchRoute(deps), removeRoute(deps.db)];
}

/** Columns of the table of suppressions. */
const COLUMNS = ["email", "reason", "bounceType", "messageId", "note", "expiresAt", "createdAt"] as const;

function listRoute(deps: Pick<Parts, "db" | "handOut">): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/suppressions",
    operationId: "listSuppressions",
    summary: "List suppressed addresses, newest first",
    description: `Sends to these addresses are \`rejected\`. Bounces and complaints add entries by themselves. ${AS_CSV}`,
    scope: "suppressions:read",
    query: ListQuery,
    answers: { 200: PageOf(SuppressionSchema) },
    handle({ request, senderId, query, page, now }) {
      const { email, reason, q } = query;
      const filter = { email: email === undefined ? undefined : addressKey(email), reason, q };
      return pageOrWhole(
        deps,
        { request, page },
        {
          owner: senderId,
          read: (after, take) => listSuppressions(deps.db, senderId, filter, now, after, take),
          show: showSuppression,
          position: ({ id }) => id,
          columns: COLUMNS,
        },
      );
    },
  });
}

function addRoute(deps: SuppressionDeps): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/suppressions",
    operationId: "addSuppression",
    shows: "suppressions:read",
    stores: { limitedBy: "handler" },
    summary: "Suppress an address",
    description: "If the address is already on the list, answers 200 with its entry, which does not change.",
    scope: "suppressions:write",
    examples: { body: { email: "ben@example.com", note: "asked by phone" } },
    body: AddSuppression,
    rules: fieldsOf,
    answers: { 200: SuppressionSchema, 201: SuppressionSchema },
    async handle({ senderId, project, body, now, record }) {
      const [email, expiresAt] = fieldsOf(body, now);
      const note = body.note?.toWellFormed() ?? null;
      const entry = { ...manual(senderId, email, now), note, expiresAt };
      const answerOf = ({ stood, refusal }: Listed) => {
        if (refusal !== null) throw refusal;
        const standing = stood.get(email);
        return standing === undefined ? created(showSuppression(entry)) : ok(showSuppression(standing));
      };
      const wanted = new Map([[email, entry]]);
      const adding = { senderId, project, now };
      return answerOf(await addSuppressions(deps, adding, wanted, (listed) => record(answerOf(listed))));
    },
  });
}

function batchRoute(deps: SuppressionDeps): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/suppressions/batch",
    operationId: "addSuppressionBatch",
    stores: { limitedBy: "handler" },
    summary: "Suppress up to 100 addresses. Each succeeds or fails separately",
    description:
      "Addresses that are wrong do not stop the others: each result has the `id` of its entry or an `error`.",
    scope: "suppressions:write",
    body: Type.Object({
      emails: Type.Array(Type.Unknown({ shownType: "string" }), {
        minItems: 1,
        maxItems: MAX_BATCH,
        examples: [["ana@example.com", "ben@example.com"]],
      }),
    }),
    examples: { answer: { data: [{ id: exampleId("sup"), email: "ben@example.com" }] } },
    answers: { 207: BatchResult },
    async handle({ senderId, project, body, now, record }) {
      const keys = body.emails.map((email) => keyOfAddress(email));
      const wanted = new Map(
        keys.flatMap((key) => (key === null ? [] : [[key, manual(senderId, key, now)] as const])),
      );
      const answerOf = ({ stood, added, refusal }: Listed) =>
        multiStatus({
          data: keys.map((key, index) => {
            const entry = key === null ? undefined : (stood.get(key) ?? added.get(key));
            return entry === undefined
              ? refused(body.emails[index], key === null ? null : refusal)
              : { id: entry.id, email: entry.email };
          }),
        });
      const adding = { senderId, project, now };
      return answerOf(await addSuppressions(deps, adding, wanted, (listed) => record(answerOf(listed))));
    },
  });
}

/** Returns why an item was not added. `param` is relative to the item, so it is empty. */
function refused(email: unknown, full: AppError | null) {
  if (full !== null)
    return { error: { message: full.message, code: "quota_exceeded", param: "", type: full.type } };
  const code = typeof email === "string" ? "invalid_email" : "invalid_item";
  return { error: { message: `The item ${ADDRESS_EXPECTED}`, code, param: "", type: "validation_error" } };
}

function removeRoute(db: Db): Route {
  return projectRoute({
    method: "DELETE",
    path: "/v1/suppressions",
    operationId: "removeSuppression",
    summary: "Remove an address from the suppression list",
    description: "Answers 204 even if the address is not on the list.",
    scope: "suppressions:write",
    query: Type.Object({
      email: Type.String({ ...EMAIL, description: "The address. Case does not matter." }),
    }),
    answers: { 204: null },
    async handle({ senderId, query }) {
      await removeSuppression(db, senderId, addressKey(query.email));
      return noContent();
    },
  });
}
