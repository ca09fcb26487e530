import { Type } from "@sinclair/typebox";
import { addressKey } from "../../core/addresses.ts";
import { invalid, notFound } from "../../core/errors.ts";
import {
  findSuppressions,
  getSuppression,
  type Suppression,
  SUPPRESSION_REASONS,
} from "../../store/projects/suppressions.ts";
import type { Db } from "../../store/engine/client.ts";
import type { CheckedRequest, Route } from "../routing/route.ts";
import { OneOf, showTime } from "../routing/schemas.ts";
import {
  callOperation,
  fieldsOf,
  ID_PAGE,
  type Operations,
  resendRoute,
  translated,
  translatedList,
} from "./translate.ts";

interface ShownSuppression {
  id: string;
  email: string;
  reason: string;
  messageId: string | null;
  createdAt: string;
}

/** Most addresses or ids in one removal. */
const MAX_REMOVALS = 100;

/** Returns the routes of `/resend/suppressions`. */
export function suppressionRoutes(operations: Operations, db: Db): Route[] {
  return [
    translated<ShownSuppression>(operations, {
      ...{
        method: "POST",
        path: "/suppressions",
        operation: "addSuppression",
        summary: "Suppress an address",
      },
      ask: ({ body }) => ({ body: { email: fieldsOf(body).email } }),
      answer: ({ id }) => ({ object: "suppression", id }),
    }),
    translatedList<ShownSuppression>(operations, {
      ...{ path: "/suppressions", operation: "listSuppressions", summary: "List suppressions" },
      query: Type.Object({ ...ID_PAGE, origin: Type.Optional(OneOf(SUPPRESSION_REASONS)) }),
      ask({ query }) {
        const { origin } = query as { origin?: string };
        return { query: origin === undefined ? {} : { reason: origin } };
      },
      show: showSuppression,
    }),
    ...itemRoutes(operations, db),
    addBatchRoute(operations),
    removeBatchRoute(operations, db),
  ];
}

/** Returns an entry by its id or its address. Throws 404 if there is none. */
async function found(db: Db, { senderId, now }: CheckedRequest, idOrEmail: string): Promise<Suppression> {
  const owner = senderId ?? "";
  const key = addressKey(idOrEmail);
  const entry = idOrEmail.includes("@")
    ? (await findSuppressions(db, owner, [key], now)).get(key)
    : await getSuppression(db, owner, idOrEmail, now);
  if (entry === undefined || entry === null) throw notFound("suppression");
  return entry;
}

function itemRoutes(operations: Operations, db: Db): Route[] {
  const path = "/suppressions/:entry";
  const reading = { method: "GET", path, operation: "listSuppressions" } as const;
  const removal = { method: "DELETE", path, operation: "removeSuppression" } as const;
  return [
    resendRoute(operations, { ...reading, summary: "Get a suppression" }, async (context) => {
      const entry = await found(db, context, context.params.entry ?? "");
      const shown = showSuppression({ ...entry, createdAt: showTime(entry.createdAt) });
      return { status: 200, body: { object: "suppression", ...shown } };
    }),
    resendRoute(operations, { ...removal, summary: "Remove a suppression" }, async (context) => ({
      status: 200,
      body: await remove(operations, db, context, context.params.entry ?? ""),
    })),
  ];
}

async function remove(operations: Operations, db: Db, context: CheckedRequest, idOrEmail: string) {
  const { id, email } = await found(db, context, idOrEmail);
  await callOperation(operations, "removeSuppression", context, { query: { email } });
  return { object: "suppression", id, deleted: true };
}

function addBatchRoute(operations: Operations): Route {
  return translated<{ data: { id?: string; error?: { message: string } }[] }>(operations, {
    method: "POST",
    path: "/suppressions/batch/add",
    operation: "addSuppressionBatch",
    summary: "Suppress addresses",
    ask: ({ body }) => ({ body: { emails: fieldsOf(body).emails } }),
    answer: ({ data }) => ({
      data: data.flatMap(({ id }) => (id === undefined ? [] : [{ object: "suppression", id }])),
    }),
  });
}

function removeBatchRoute(operations: Operations, db: Db): Route {
  const route = {
    method: "POST",
    path: "/suppressions/batch/remove",
    operation: "removeSuppression",
  } as const;
  return resendRoute(operations, { ...route, summary: "Remove suppressions" }, async (context) => {
    const { emails, ids } = fieldsOf(context.body);
    const wanted = emails ?? ids;
    const isList = Array.isArray(wanted) && wanted.every((item) => typeof item === "string");
    if (!isList || wanted.length === 0 || wanted.length > MAX_REMOVALS)
      throw invalid("emails", `must be a list of 1 to ${MAX_REMOVALS} addresses, or ids in "ids".`);
    const data: unknown[] = [];
    for (const item of wanted) data.push(await remove(operations, db, context, item));
    return { status: 200, body: { data } };
  });
}

function showSuppression({ id, email, reason, messageId, createdAt }: ShownSuppression) {
  return { id, email, origin: reason, source_id: messageId, created_at: createdAt };
}
