import { Type } from "@sinclair/typebox";
import { MAX_PROPERTIES } from "../../../core/audience/properties.ts";
import { AppError, existing } from "../../../core/errors.ts";
import { listProperties } from "../../../store/audience/properties.ts";
import { getSegment, listSegments, type Segment } from "../../../store/audience/segments.ts";
import type { Db } from "../../../store/engine/client.ts";
import type { CheckedRequest, Route } from "../../routing/route.ts";
import { showTime } from "../../routing/schemas.ts";
import { contactId } from "./contact-id.ts";
import { Given, ShortText } from "../form/given.ts";
import {
  answeredBy,
  calledBefore,
  callOperation,
  ID_PAGE,
  listBody,
  listRoute,
  type Operations,
  resendRoute,
  translated,
} from "../form/translate.ts";
import { ALL, memberFilter, memberProperty, membership, newMemberProperty, segmentsOf } from "./members.ts";

/** Every contact is in the one segment. When it was made is not known, so its time is the beginning. */
const EVERYONE = { id: ALL, name: "All contacts", created_at: "1970-01-01T00:00:00.000Z" };
const Named = Type.Object({ name: Given(ShortText) });

/** Returns the routes of segments, which Resend also calls audiences, and those of a contact's segments. */
export function segmentRoutes(operations: Operations, db: Db): Route[] {
  return [
    ...["/segments", "/audiences"].flatMap((path) => [
      createRoute(operations, path),
      listRoute(operations, {
        path,
        operation: "listSegments",
        summary: "List segments",
        read: ({ senderId }, place, take) => listSegments(db, senderId, place, take),
        show: (segments, { query }) => [...(isFirst(query) ? [EVERYONE] : []), ...segments.map(showSegment)],
      }),
      ...itemRoutes(operations, db, `${path}/:segment`),
    ]),
    ...ofContactRoutes(operations, db),
  ];
}

function isFirst(query: CheckedRequest["query"]): boolean {
  const { after, before } = query as { after?: string; before?: string };
  return after === undefined && before === undefined;
}

function showSegment({ id, name, createdAt }: Segment) {
  return { id, name, created_at: showTime(createdAt) };
}

function createRoute(operations: Operations, path: string): Route {
  const route = {
    method: "POST",
    path,
    operation: "createSegment",
    summary: "Create a segment",
    body: Named,
  } as const;
  return resendRoute(operations, route, async (context) => {
    const property = newMemberProperty();
    const made = await calledBefore<{ id: string }>(operations, "createContactProperty", context, {
      body: { name: property, type: "boolean" },
    });
    const { name } = context.body;
    const body = { ...(name == null ? {} : { name }), filter: memberFilter(property) };
    const show = ({ id, name }: Segment) => ({ object: "segment", id, name });
    try {
      return await answeredBy(operations, "createSegment", context, { body }, show);
    } catch (error) {
      await calledBefore(operations, "deleteContactProperty", context, { params: { id: made.id } });
      throw error;
    }
  });
}

function itemRoutes(operations: Operations, db: Db, path: string): Route[] {
  const notAll = ({ params }: CheckedRequest) => {
    if (params.segment === ALL)
      throw new AppError("not_found", `The segment "${ALL}" has all contacts, and stays.`);
  };
  const reading = { method: "GET", path, operation: "getSegment", summary: "Get a segment" } as const;
  const removal = {
    method: "DELETE",
    path,
    operation: "deleteSegment",
    summary: "Delete a segment",
  } as const;
  return [
    resendRoute(operations, reading, async ({ senderId, params: { segment: id = "" } }) => {
      if (id === ALL) return { status: 200, body: { object: "segment", ...EVERYONE } };
      const segment = existing("segment", await getSegment(db, senderId ?? "", id));
      return { status: 200, body: { object: "segment", ...showSegment(segment) } };
    }),
    translated(operations, {
      method: "PATCH",
      path,
      operation: "updateSegment",
      summary: "Rename a segment",
      body: Named,
      ask(context) {
        notAll(context);
        const { name } = context.body;
        return { params: { id: context.params.segment ?? "" }, body: name == null ? {} : { name } };
      },
      answer: ({ id }: Segment) => ({ object: "segment", id }),
    }),
    resendRoute(operations, removal, async (context) => {
      notAll(context);
      const { senderId, params } = context;
      const { segment: id = "" } = params;
      const segment = await getSegment(db, senderId ?? "", id);
      await callOperation(operations, removal.operation, context, { params: { id } });
      await removeMembers(operations, db, context, segment);
      return { status: 200, body: { object: "segment", id, deleted: true } };
    }),
  ];
}

/** Removes the property that the members of a deleted segment had. */
async function removeMembers(
  operations: Operations,
  db: Db,
  context: CheckedRequest,
  segment: Segment | null,
): Promise<void> {
  const name = segment === null ? null : memberProperty(segment);
  const properties =
    name === null ? [] : await listProperties(db, context.senderId ?? "", null, MAX_PROPERTIES);
  const property = properties.find((one) => one.name === name);
  if (property !== undefined)
    await callOperation(operations, "deleteContactProperty", context, { params: { id: property.id } });
}

function ofContactRoutes(operations: Operations, db: Db): Route[] {
  const path = "/contacts/:contact/segments";
  const change = (method: "POST" | "DELETE", summary: string) =>
    resendRoute(
      operations,
      { method, path: `${path}/:segment`, operation: "updateContact", summary },
      async (context) => {
        const { segment = "" } = context.params;
        const joins = method === "POST";
        const id = await contactId(db, context);
        const properties = await membership(db, context.senderId ?? "", [segment], joins);
        await callOperation(operations, "updateContact", context, { params: { id }, body: { properties } });
        return {
          status: 200,
          body: joins ? { id: segment } : { id: segment, audienceId: segment, deleted: true },
        };
      },
    );
  const listing = {
    method: "GET",
    path,
    operation: "getContact",
    summary: "List a contact's segments",
    query: Type.Object(ID_PAGE),
  } as const;
  return [
    resendRoute(operations, listing, async (context) => {
      const params = { id: await contactId(db, context) };
      const { body } = await callOperation(operations, listing.operation, context, { params });
      const { properties } = body as { properties: Record<string, unknown> };
      const segments = await segmentsOf(db, context.senderId ?? "", properties);
      return { status: 200, body: listBody([EVERYONE, ...segments.map(showSegment)], false) };
    }),
    change("POST", "Add a contact to a segment"),
    change("DELETE", "Take a contact out of a segment"),
  ];
}
