import { Type } from "@sinclair/typebox";
import { invalid } from "../../../core/errors.ts";
import { isObject } from "../../../core/validation.ts";
import { checkedFilter, segmentFilter } from "../../../flows/audience/segments.ts";
import { contactPasses } from "../../../store/audience/filter-sql.ts";
import type { Db, Store } from "../../../store/engine/client.ts";
import { type ContactFilter, listContacts } from "../../../store/projects/contacts.ts";
import { exampleId } from "../../openapi/examples.ts";
import type { Answer } from "../../routing/answer.ts";
import type { Page } from "../../routing/paging.ts";
import type { Parts } from "../../routing/parts.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { MAX_ID_CHARS, PAGE_QUERY, PageOf, Search } from "../../routing/schemas.ts";
import { AS_CSV, pageOrWhole } from "../../routing/whole-list.ts";
import { ContactSchema, showContact } from "../../views/contact.ts";

/** Maximum characters of a filter in a query. */
const MAX_FILTER_CHARS = 4000;

const ListQuery = Type.Object({
  ...PAGE_QUERY,
  subscribed: Type.Optional(Type.Boolean()),
  q: Search("Part of the address, first name or last name. Case does not matter."),
  segmentId: Type.Optional(
    Type.String({
      maxLength: MAX_ID_CHARS,
      description: "Only those who pass the filter of this segment.",
      examples: [exampleId("seg")],
    }),
  ),
  filter: Type.Optional(
    Type.String({
      minLength: 2,
      maxLength: MAX_FILTER_CHARS,
      description: "A filter as JSON, as segments have it. A longer one needs a segment.",
      examples: ['{"field":"subscribed","op":"eq","value":true}'],
    }),
  ),
});

/** Columns of the table of contacts. */
const COLUMNS = [
  "email",
  "firstName",
  "lastName",
  "subscribed",
  "unsubscribedAt",
  "metadata",
  "properties",
  "topics",
  "lastSentAt",
  "lastOpenedAt",
  "lastClickedAt",
  "createdAt",
  "updatedAt",
] as const;

type ListDeps = Store & Pick<Parts, "handOut">;

/** Returns the routes of the lists of contacts: all, and those of a segment. */
export function contactListRoutes(deps: ListDeps): Route[] {
  const { db } = deps;
  return [
    projectRoute({
      method: "GET",
      path: "/v1/contacts",
      operationId: "listContacts",
      summary: "List contacts, newest first",
      description: `Filters can be combined. ${AS_CSV}`,
      scope: "contacts:read",
      query: ListQuery,
      answers: { 200: PageOf(ContactSchema) },
      errors: ["not_found", "conflict"],
      async handle({ request, senderId, query, page, now }) {
        const { subscribed, q, filter, segmentId } = query;
        if (filter !== undefined && segmentId !== undefined)
          throw invalid("segmentId", "cannot be given together with filter.");
        const passes =
          segmentId === undefined
            ? await passesGiven(db, senderId, filter, now)
            : contactPasses((await segmentFilter(db, senderId, segmentId, now)).condition);
        return answerContacts(deps, { request, senderId, page }, { subscribed, q, passes });
      },
    }),
    projectRoute({
      method: "GET",
      path: "/v1/segments/:id/contacts",
      operationId: "listSegmentContacts",
      summary: "List the contacts of a segment, newest first",
      description: `Those that pass its filter now. A page may be short, because filters look at 100 000 contacts for each. ${AS_CSV}`,
      scope: "contacts:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(ContactSchema) },
      errors: ["conflict"],
      async handle({ request, senderId, params, page, now }) {
        const { condition } = await segmentFilter(db, senderId, params.id, now);
        return answerContacts(deps, { request, senderId, page }, { passes: contactPasses(condition) });
      },
    }),
  ];
}

async function passesGiven(
  db: Db,
  senderId: string,
  text: string | undefined,
  now: number,
): Promise<ContactFilter["passes"]> {
  if (text === undefined) return undefined;
  const filter = parsed(text);
  if (!isObject(filter)) throw invalid("filter", "must be a filter as JSON.");
  return contactPasses(await checkedFilter(db, senderId, filter, now));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function answerContacts(
  deps: ListDeps,
  { request, senderId, page }: { request: Request; senderId: string; page: () => Page },
  filter: ContactFilter,
): Promise<Answer> {
  return pageOrWhole(
    deps,
    { request, page },
    {
      owner: senderId,
      read: (after, take) => listContacts(deps.db, senderId, filter, after, take),
      show: showContact,
      position: ({ id }) => id,
      columns: COLUMNS,
    },
  );
}
