import { type Static, Type } from "@sinclair/typebox";
import { addressKey, NO_ADDRESS, normalizeAddress } from "../../core/addresses.ts";
import { invalid, readAll } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { NO_TIME, parseTime } from "../../core/date-times.ts";
import { ConstraintError, type Db, type Statement } from "../../store/engine/client.ts";
import {
  addSuppression,
  findSuppressions,
  listSuppressions,
  removeSuppression,
  SUPPRESSION_REASONS,
  type Suppression,
} from "../../store/suppressions.ts";
import { type Answer, created, multiStatus, noContent, ok } from "../answer.ts";
import { projectRoute, type Route } from "../route.ts";
import { Nullable, OneOf, PAGE_QUERY, PageOf, Search, showTime, Timestamp, WITHOUT_NUL } from "../schemas.ts";

const MAX_NOTE_CHARS = 1000;
/** Addresses of a batch at most. */
const MAX_BATCH = 100;
/** How often an addition is tried again because another one of the same address came between its read and its write. */
const MAX_TRIES = 10;

const SuppressionSchema = Type.Object(
  {
    id: Type.String(),
    email: Type.String({ description: "The address, all lower case." }),
    reason: OneOf(SUPPRESSION_REASONS),
    bounceType: Nullable(OneOf(["hard", "soft"])),
    messageId: Nullable(Type.String({ description: "The message whose bounce or complaint it was." })),
    note: Nullable(Type.String()),
    expiresAt: Nullable(Timestamp),
    createdAt: Timestamp,
  },
  { title: "Suppression" },
);

const ListQuery = Type.Object({
  ...PAGE_QUERY,
  email: Type.Optional(Type.String({ description: "Only this address, in any case." })),
  reason: Type.Optional(OneOf(SUPPRESSION_REASONS)),
  q: Search("Part of the address, in any case."),
});

const AddSuppression = Type.Object({
  email: Type.String(),
  note: Type.Optional(Nullable(Type.String({ maxLength: MAX_NOTE_CHARS, pattern: WITHOUT_NUL }))),
  expiresAt: Type.Optional(
    Nullable(
      Type.String({ description: "ISO 8601 time ahead; without one the address is blocked for good." }),
    ),
  ),
});

const BatchResult = Type.Object({
  data: Type.Array(
    Type.Object({
      id: Type.Optional(Type.String({ description: "Present when the address is on the list." })),
      email: Type.Optional(Type.String()),
      error: Type.Optional(
        Type.Object({
          message: Type.String(),
          code: Type.String(),
          param: Type.String(),
          type: Type.String(),
        }),
      ),
    }),
    { description: "One result an address, in their order." },
  ),
});

function show(suppression: Suppression): Static<typeof SuppressionSchema> {
  const { id, email, reason, bounceType, messageId, note, expiresAt, createdAt } = suppression;
  return {
    ...{ id, email, reason, bounceType, messageId, note },
    expiresAt: showTime(expiresAt),
    createdAt: showTime(createdAt),
  };
}

function manual(senderId: string, email: string, now: number): Suppression {
  return {
    ...{ id: newId("sup", now), senderId, email, reason: "manual", bounceType: null },
    ...{ messageId: null, note: null, expiresAt: null, createdAt: now },
  };
}

/** The address key. Throws 422 for what is no address. */
function keyOf(email: string): string {
  if (normalizeAddress(email) === null) throw invalid("email", NO_ADDRESS, "invalid_email");
  return addressKey(email);
}

/** Milliseconds; null: for good. Throws 422 for what is no time, or none that lies ahead. */
function expiryOf(text: string | null | undefined, now: number): number | null {
  if (text === null || text === undefined) return null;
  const at = parseTime(text);
  if (at === null) throw invalid("expiresAt", NO_TIME);
  if (at <= now) throw invalid("expiresAt", "This time has passed.");
  return at;
}

/** The address key, empty where no address is given, and the expiry. Throws 422 over all that is wrong. */
function fieldsOf({ email, expiresAt }: Partial<Static<typeof AddSuppression>>, now: number) {
  return readAll(
    () => (email === undefined ? "" : keyOf(email)),
    () => expiryOf(expiresAt, now),
  );
}

/** Entries by address key: those that stood, and those just added. */
interface Listed {
  stood: ReadonlyMap<string, Suppression>;
  added: ReadonlyMap<string, Suppression>;
}

/** What a request to add gives. */
interface Adding {
  senderId: string;
  now: number;
  record: (answer: Answer) => Statement[];
}

/** Adds what is not on the list yet, and answers in the same write. */
async function add(
  db: Db,
  { senderId, now, record }: Adding,
  wanted: ReadonlyMap<string, Suppression>,
  answerOf: (listed: Listed) => Answer,
): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    const stood = await findSuppressions(db, senderId, [...wanted.keys()], now);
    const added = new Map([...wanted].filter(([email]) => !stood.has(email)));
    const answer = answerOf({ stood, added });
    try {
      await db.write([...[...added.values()].flatMap(addSuppression), ...record(answer)]);
      return answer;
    } catch (error) {
      const raced = error instanceof ConstraintError && error.unique?.startsWith("suppressions.") === true;
      if (!raced || tries === MAX_TRIES) throw error;
    }
  }
}

/** `/v1/suppressions`. */
export function suppressionRoutes({ db }: { db: Db }): Route[] {
  return [listRoute(db), addRoute(db), batchRoute(db), removeRoute(db)];
}

function listRoute(db: Db): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/suppressions",
    operationId: "listSuppressions",
    summary: "List suppressed addresses, newest first",
    scope: "suppressions:read",
    query: ListQuery,
    answers: { 200: PageOf(SuppressionSchema) },
    async handle({ senderId, query, page, now }) {
      const { after, take, answer } = page();
      const { email, reason, q } = query;
      const filter = { email: email === undefined ? undefined : addressKey(email), reason, q };
      const { rows, stoppedAt } = await listSuppressions(db, senderId, filter, now, after, take);
      return ok(answer(rows, show, ({ id }) => id, stoppedAt));
    },
  });
}

function addRoute(db: Db): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/suppressions",
    operationId: "addSuppression",
    summary: "Suppress an address",
    description:
      "An address that is on the list already is answered 200 with its entry, which stays as it is.",
    scope: "suppressions:write",
    body: AddSuppression,
    rules: fieldsOf,
    answers: { 200: SuppressionSchema, 201: SuppressionSchema },
    async handle({ senderId, body, now, record }) {
      const [email, expiresAt] = fieldsOf(body, now);
      const note = body.note?.toWellFormed() ?? null;
      const entry = { ...manual(senderId, email, now), note, expiresAt };
      const answerOf = ({ stood }: Listed) => {
        const standing = stood.get(email);
        return standing === undefined ? created(show(entry)) : ok(show(standing));
      };
      return add(db, { senderId, now, record }, new Map([[email, entry]]), answerOf);
    },
  });
}

function batchRoute(db: Db): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/suppressions/batch",
    operationId: "addSuppressionBatch",
    summary: "Suppress up to 100 addresses, each taken or refused on its own",
    scope: "suppressions:write",
    body: Type.Object({
      emails: Type.Array(Type.Unknown(), { minItems: 1, maxItems: MAX_BATCH, description: "Addresses." }),
    }),
    answers: { 207: BatchResult },
    async handle({ senderId, body, now, record }) {
      const keys = body.emails.map((email) => itemKey(email));
      const wanted = new Map(
        keys.flatMap((key) => (key === null ? [] : [[key, manual(senderId, key, now)] as const])),
      );
      const answerOf = ({ stood, added }: Listed) =>
        multiStatus({
          data: keys.map((key, index) => {
            const entry = key === null ? undefined : (stood.get(key) ?? added.get(key));
            return entry === undefined ? refused(index) : { id: entry.id, email: entry.email };
          }),
        });
      return add(db, { senderId, now, record }, wanted, answerOf);
    },
  });
}

function itemKey(email: unknown): string | null {
  return typeof email === "string" && normalizeAddress(email) !== null ? addressKey(email) : null;
}

function refused(index: number) {
  return {
    error: {
      message: NO_ADDRESS,
      code: "invalid_email",
      param: `emails[${index}]`,
      type: "validation_error",
    },
  };
}

function removeRoute(db: Db): Route {
  return projectRoute({
    method: "DELETE",
    path: "/v1/suppressions",
    operationId: "removeSuppression",
    summary: "Take an address off the list",
    description: "Answered 204 also where the address is not on the list.",
    scope: "suppressions:write",
    query: Type.Object({ email: Type.String({ description: "The address, in any case." }) }),
    answers: { 204: null },
    async handle({ senderId, query }) {
      await removeSuppression(db, senderId, addressKey(query.email));
      return noContent();
    },
  });
}
