import { type Static, Type } from "@sinclair/typebox";
import { FIELDS, MAX_CONDITIONS, MAX_DEPTH, MAX_SEGMENTS } from "../../../core/audience/filter.ts";
import { existing, notFound } from "../../../core/errors.ts";
import { allows } from "../../../core/scopes.ts";
import { changeSegment, checkedFilter, createSegment } from "../../../flows/audience/segments.ts";
import { MAX_VALUES_READ, passingContacts } from "../../../store/audience/filter-sets.ts";
import { deleteSegment, getSegment, listSegments, type Segment } from "../../../store/audience/segments.ts";
import type { Store } from "../../../store/engine/client.ts";
import { created, noContent, ok } from "../../routing/answer.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { MAX_NAME_CHARS, NOT_BLANK, PAGE_QUERY, PageOf, showTime, Timestamp } from "../../routing/schemas.ts";

/** Contacts of a sample. */
const SAMPLE = 10;

const EXAMPLE = { field: "subscribed", op: "eq", value: true };
const FilterSchema = Type.Record(Type.String(), Type.Unknown(), {
  description: `\`all\`, \`any\` or \`not\` (none) of a list of filters, or a condition \`{property | topic | field, op, value}\`. It is on a property by name, a topic by id, or a field of the contact (${FIELDS.map((name) => `\`${name}\``).join(", ")}). All but the times have the operators \`eq\` \`ne\`. Properties, and times that may be missing, have \`set\` \`unset\`. Strings have \`contains\` \`startsWith\` \`endsWith\`, numbers and dates \`gt\` \`gte\` \`lt\` \`lte\`, and dates \`withinDays\` \`olderThanDays\`. A topic is \`subscribed\` if the contact gets it. A contact without a value is \`ne\` to every value, and passes no other comparison. At most ${MAX_DEPTH} levels and ${MAX_CONDITIONS} conditions.`,
  examples: [EXAMPLE],
});
const CreateSegment = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: MAX_NAME_CHARS, ...NOT_BLANK, examples: ["Pro customers"] }),
    filter: FilterSchema,
  },
  { title: "NewSegment" },
);
const SegmentView = Type.Object(
  {
    id: Type.String(),
    name: CreateSegment.properties.name,
    filter: FilterSchema,
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: "Segment" },
);
const Counted = Type.Object(
  {
    count: Type.Integer({ description: "Contacts that pass the filter now." }),
    estimated: Type.Boolean({
      description: "Whether `count` was extrapolated from an even part of the contacts.",
    }),
    sample: Type.Array(Type.Object({ id: Type.String(), email: Type.String() }), {
      description: `Those of the counted who were added last, at most ${SAMPLE}. Empty if the key lacks \`contacts:read\`.`,
    }),
  },
  { title: "SegmentCount" },
);

function showSegment({ senderId: _, createdAt, updatedAt, ...segment }: Segment): Static<typeof SegmentView> {
  return { ...segment, createdAt: showTime(createdAt), updatedAt: showTime(updatedAt) };
}

/** Returns the routes of `/v1/segments`, but for the list of a segment's contacts. */
export function segmentRoutes({ db }: Pick<Store, "db">): Route[] {
  return [
    projectRoute({
      method: "POST",
      path: "/v1/segments",
      operationId: "createSegment",
      stores: {},
      summary: "Create a segment: a filter of contacts with a name",
      description: `A segment has no list of its own: who passes its filter belongs to it at that moment. A project has at most ${MAX_SEGMENTS}.`,
      scope: "audience:write",
      body: CreateSegment,
      answers: { 201: SegmentView },
      async handle({ senderId, body, now, record }) {
        const answer = (segment: Segment) => created(showSegment(segment));
        return answer(await createSegment(db, senderId, body, now, (segment) => record(answer(segment))));
      },
    }),
    projectRoute({
      method: "GET",
      path: "/v1/segments",
      operationId: "listSegments",
      summary: "List segments, newest first",
      description: "With their filters, without counts.",
      scope: "audience:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(SegmentView) },
      async handle({ senderId, page }) {
        const { after, take, answer } = page();
        return ok(answer(await listSegments(db, senderId, after, take), showSegment, ({ id }) => id));
      },
    }),
    countRoute({ db }),
    ...itemRoutes({ db }),
  ];
}

function countRoute({ db }: Pick<Store, "db">): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/segments/count",
    operationId: "countSegment",
    readsOnly: true,
    costly: "content",
    summary: "Count the contacts that pass a filter, and show some",
    description: `The filter need not be saved. After reading ${MAX_VALUES_READ.toLocaleString("en-US")} values, such as those of two conditions for 750,000 contacts, the count is an estimate. With \`exact\`, each condition takes about a tenth of a second for a million contacts.`,
    scope: "audience:read",
    body: Type.Object(
      {
        filter: FilterSchema,
        exact: Type.Optional(
          Type.Boolean({ description: "Counts all contacts, however long it takes. Default: false." }),
        ),
      },
      { title: "CountSegment" },
    ),
    answers: { 200: Counted },
    async handle({ senderId, principal, body, now }) {
      const filter = await checkedFilter(db, senderId, body.filter, now);
      const { last, ...counted } = await passingContacts(db, senderId, filter, {
        most: body.exact === true ? undefined : MAX_VALUES_READ,
        sample: allows(principal.scopes, "contacts:read") ? SAMPLE : 0,
      });
      return ok({ ...counted, sample: last });
    },
  });
}

function itemRoutes({ db }: Pick<Store, "db">): Route[] {
  const path = "/v1/segments/:id";
  return [
    projectRoute({
      method: "GET",
      path,
      operationId: "getSegment",
      summary: "Get a segment",
      description: "With its filter, but without a count.",
      scope: "audience:read",
      answers: { 200: SegmentView },
      async handle({ senderId, params }) {
        return ok(showSegment(existing("segment", await getSegment(db, senderId, params.id))));
      },
    }),
    projectRoute({
      method: "PATCH",
      path,
      operationId: "updateSegment",
      stores: {},
      summary: "Change the name or the filter of a segment",
      description: "Fields that are absent stay as they are. `filter` is replaced as a whole.",
      scope: "audience:write",
      body: Type.Partial(CreateSegment, { title: "SegmentChanges" }),
      answers: { 200: SegmentView },
      async handle({ senderId, params, body, now }) {
        return ok(showSegment(await changeSegment(db, { senderId, id: params.id }, body, now)));
      },
    }),
    projectRoute({
      method: "DELETE",
      path,
      operationId: "deleteSegment",
      summary: "Delete a segment",
      description: "Its contacts stay as they are.",
      scope: "audience:write",
      answers: { 204: null },
      async handle({ senderId, params }) {
        if (!(await deleteSegment(db, senderId, params.id))) throw notFound("segment");
        return noContent();
      },
    }),
  ];
}
