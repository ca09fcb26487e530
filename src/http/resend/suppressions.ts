import { Type } from "@sinclair/typebox";
import { addressKey } from "../../core/addresses.ts";
import { invalid, notFound } from "../../core/errors.ts";
import {
  findSuppressions,
  getSuppression,
  listSuppressions,
  type Suppression,
  SUPPRESSION_REASONS,
  type SuppressionReason,
} from "../../store/projects/suppressions.ts";
import type { Db } from "../../store/engine/client.ts";
import type { CheckedRequest, Route } from "../routing/route.ts";
import { OneOf, showTime } from "../routing/schemas.ts";
import { AddressText, Given, Id } from "./form/given.ts";
import {
  callOperation,
  ID_PAGE,
  listRoute,
  type Operations,
  resendRoute,
  translated,
} from "./form/translate.ts";

/** Maximum number of addresses or ids in one request. */
const MAX_ENTRIES = 100;

/** Returns the routes of `/resend/suppressions`. */
export function suppressionRoutes(operations: Operations, db: Db): Route[] {
  return [
    translated(operations, {
      method: "POST",
      path: "/suppressions",
      operation: "addSuppression",
      summary: "Suppress an address",
      body: Type.Object({ email: Given(AddressText) }),
      ask: ({ body: { email } }) => ({ body: email == null ? {} : { email } }),
      answer: ({ id }: { id: string }) => ({ object: "suppression", id }),
    }),
    listRoute(operations, {
      path: "/suppressions",
      operation: "listSuppressions",
      summary: "List suppressions",
      query: Type.Object({ ...ID_PAGE, origin: Type.Optional(OneOf(SUPPRESSION_REASONS)) }),
      read({ senderId, query, now }, place, take) {
        const { origin: reason } = query as { origin?: SuppressionReason };
        return listSuppressions(db, senderId, { reason }, now, place, take);
      },
      show: (entries) => entries.map(showSuppression),
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
      return { status: 200, body: { object: "suppression", ...showSuppression(entry) } };
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
  return translated(operations, {
    method: "POST",
    path: "/suppressions/batch/add",
    operation: "addSuppressionBatch",
    summary: "Suppress addresses",
    body: Type.Object({ emails: Given(Type.Array(AddressText, { maxItems: MAX_ENTRIES })) }),
    ask: ({ body: { emails } }) => ({ body: emails == null ? {} : { emails } }),
    answer: ({ data }: { data: { id?: string }[] }) => ({
      data: data.flatMap(({ id }) => (id === undefined ? [] : [{ object: "suppression", id }])),
    }),
  });
}

function removeBatchRoute(operations: Operations, db: Db): Route {
  const route = {
    method: "POST",
    path: "/suppressions/batch/remove",
    operation: "removeSuppression",
    body: Type.Object({
      emails: Given(Type.Array(AddressText, { maxItems: MAX_ENTRIES })),
      ids: Given(Type.Array(Id, { maxItems: MAX_ENTRIES })),
    }),
  } as const;
  return resendRoute(operations, { ...route, summary: "Remove suppressions" }, async (context) => {
    const { emails, ids } = context.body;
    const wanted = emails ?? ids ?? [];
    if (wanted.length === 0)
      throw invalid("emails", `must be a list of 1 to ${MAX_ENTRIES} addresses, or ids in "ids".`);
    const data: unknown[] = [];
    for (const item of wanted) data.push(await remove(operations, db, context, item));
    return { status: 200, body: { data } };
  });
}

function showSuppression({ id, email, reason, messageId, createdAt }: Suppression) {
  return { id, email, origin: reason, source_id: messageId, created_at: showTime(createdAt) };
}
