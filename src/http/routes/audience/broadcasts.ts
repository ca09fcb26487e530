import { Type } from "@sinclair/typebox";
import { MAX_BROADCASTS, MAX_RATE_PER_HOUR } from "../../../core/audience/broadcasts.ts";
import { AppError } from "../../../core/errors.ts";
import { Address as GivenAddress, AddressList } from "../../../core/messages/address-input.ts";
import { MAX_REPLY_TO, MAX_SUBJECT_CHARS } from "../../../core/messages/send-item.ts";
import {
  changeDraft,
  createBroadcast,
  deleteBroadcast,
  existingBroadcast,
  type WholeBroadcast,
} from "../../../flows/broadcasts/save.ts";
import { sendBroadcast, stepBroadcast } from "../../../flows/broadcasts/send.ts";
import { figuresOfBroadcasts } from "../../../store/audience/broadcast-figures.ts";
import { listBroadcasts } from "../../../store/audience/broadcasts.ts";
import { exampleId } from "../../openapi/examples.ts";
import { created, noContent, ok } from "../../routing/answer.ts";
import type { Parts } from "../../routing/parts.ts";
import { type Principal, projectRoute, type Route } from "../../routing/route.ts";
import { MAX_ID_CHARS, Nullable, PAGE_QUERY, PageOf, TIME, WITHOUT_NUL } from "../../routing/schemas.ts";
import {
  BroadcastSummaryView,
  BroadcastView,
  showBroadcast,
  showBroadcastSummary,
} from "../../views/audience/broadcast.ts";
import { GivenAbTest } from "../../views/audience/ab-test.ts";
import { broadcastCheckRoutes } from "./broadcast-check.ts";
import { broadcastResultRoutes } from "./broadcast-results.ts";
import { GivenRouteIds, requireRoutes } from "../../views/route-ids.ts";

const Id = (description: string, examples: string[]) =>
  Type.String({ minLength: 1, maxLength: MAX_ID_CHARS, description, examples });
const optional = <Schema extends ReturnType<typeof Type.String>>(schema: Schema) =>
  Type.Optional(Nullable(schema));
const Part = (description: string) => Type.String({ ...WITHOUT_NUL, description, examples: ["<p>News</p>"] });

const CreateBroadcast = Type.Object(
  {
    name: BroadcastView.properties.name,
    topicId: Id("The topic that readers leave by its unsubscribe link.", ["top_01hzy8"]),
    segmentId: optional(Id("Who gets it. If absent or null: all contacts.", ["seg_01hzy8"])),
    from: GivenAddress,
    replyTo: Type.Optional(Nullable(AddressList({ maxItems: MAX_REPLY_TO }))),
    subject: optional(
      Type.String({
        maxLength: MAX_SUBJECT_CHARS,
        ...WITHOUT_NUL,
        description: "Required until it is sent, unless `templateId` is given.",
        examples: ["News of May"],
      }),
    ),
    templateId: optional(
      Id("Id or slug of a template, whose content is copied when it is sent.", ["monthly-letter"]),
    ),
    html: optional(
      Part(
        "Liquid, with `contact.email`, `contact.firstName`, `contact.lastName`, `contact.properties.<name>`, `postalAddress` and `unsubscribeUrl`.",
      ),
    ),
    text: optional(Part("As `html`.")),
    scheduledAt: optional(
      Type.String({ ...TIME, description: "When to begin once it is sent. A past time begins at once." }),
    ),
    ratePerHour: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 1,
          maximum: MAX_RATE_PER_HOUR,
          description: "Most messages an hour. If absent or null: no limit.",
          examples: [10_000],
        }),
      ),
    ),
    routeIds: GivenRouteIds("those of the From domain or the project. Requires an account-wide key"),
    abTest: Type.Optional(Nullable(GivenAbTest)),
  },
  { title: "NewBroadcast" },
);
const EXAMPLE = {
  name: "May letter",
  topicId: exampleId("top"),
  from: "Ana <ana@mail.example.com>",
  subject: 'Hello {{ contact.firstName | default: "there" }}',
  html: '<p>News</p><p><a href="{{ unsubscribeUrl }}">Unsubscribe</a></p>',
};
const ChangeBroadcast = Type.Partial(CreateBroadcast, {
  title: "BroadcastChanges",
  examples: [{ subject: "Hello again" }],
});

/** Returns the routes of `/v1/broadcasts`. */
export function broadcastRoutes(deps: Parts): Route[] {
  return [
    ...collectionRoutes(deps),
    ...itemRoutes(deps),
    ...broadcastCheckRoutes(deps),
    sendRoute(deps),
    ...stepRoutes(deps),
    ...broadcastResultRoutes(deps),
  ];
}

/** Routes are the account's, so a project's key may not choose among them. */
async function requireOwnRoutes(
  { db }: Parts,
  { accountId, senderId }: Principal,
  routeIds: readonly string[] | undefined,
): Promise<void> {
  if (routeIds === undefined) return;
  if (senderId !== null && routeIds.length > 0)
    throw new AppError("permission_error", "Choosing the routes of a broadcast needs an account-wide key.", {
      param: "routeIds",
    });
  await requireRoutes(db, accountId, routeIds);
}

function collectionRoutes(deps: Parts): Route[] {
  const { db } = deps;
  return [
    projectRoute({
      method: "POST",
      path: "/v1/broadcasts",
      operationId: "createBroadcast",
      stores: {},
      summary: "Write a broadcast: a letter to the contacts of a segment",
      description: `Saves a draft, which POST /v1/broadcasts/{id}/send sends. Each contact gets a message of the stream \`bulk\`, with the topic and one-click unsubscribing. A project has at most ${MAX_BROADCASTS}.`,
      scope: "audience:write",
      examples: { body: EXAMPLE },
      body: CreateBroadcast,
      bodyLimit: "message",
      answers: { 201: BroadcastView },
      async handle({ principal, senderId, body, now, record }) {
        await requireOwnRoutes(deps, principal, body.routeIds);
        const answer = (made: WholeBroadcast) => created(showBroadcast(made));
        return answer(await createBroadcast(deps, senderId, body, now, (made) => record(answer(made))));
      },
    }),
    projectRoute({
      method: "GET",
      path: "/v1/broadcasts",
      operationId: "listBroadcasts",
      summary: "List broadcasts, newest first",
      description: "With their counts, without their content.",
      scope: "audience:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(BroadcastSummaryView) },
      async handle({ senderId, page }) {
        const { after, take, answer } = page();
        const broadcasts = await listBroadcasts(db, senderId, after, take);
        const ids = broadcasts.map(({ id }) => id);
        const figures = await figuresOfBroadcasts(db, senderId, ids);
        const show = (one: (typeof broadcasts)[number]) => showBroadcastSummary(one, figures.get(one.id));
        return ok(answer(broadcasts, show, ({ id }) => id));
      },
    }),
  ];
}

function itemRoutes(deps: Parts): Route[] {
  const { db } = deps;
  const path = "/v1/broadcasts/:id";
  return [
    projectRoute({
      method: "GET",
      path,
      operationId: "getBroadcast",
      summary: "Get a broadcast",
      description: "With its content and its counts so far.",
      scope: "audience:read",
      answers: { 200: BroadcastView },
      async handle({ senderId, params: { id } }) {
        const broadcast = await existingBroadcast(db, senderId, id);
        const figures = await figuresOfBroadcasts(db, senderId, [id]);
        return ok(showBroadcast(broadcast, figures.get(id)));
      },
    }),
    projectRoute({
      method: "PATCH",
      path,
      operationId: "updateBroadcast",
      shows: "audience:read",
      stores: { limitedBy: "handler" },
      summary: "Change a draft",
      description: "Null takes a field away. A broadcast that was sent never changes.",
      scope: "audience:write",
      body: ChangeBroadcast,
      bodyLimit: "message",
      answers: { 200: BroadcastView },
      errors: ["conflict"],
      async handle({ principal, senderId, params: { id }, body, now, growing }) {
        await requireOwnRoutes(deps, principal, body.routeIds);
        return ok(showBroadcast(await changeDraft(deps, { senderId, id }, body, now, growing)));
      },
    }),
    projectRoute({
      method: "DELETE",
      path,
      operationId: "deleteBroadcast",
      summary: "Delete a broadcast",
      description:
        "A draft, or one that made no messages. Messages show its content, so 409 until the last of them is gone by retention.",
      scope: "audience:write",
      answers: { 204: null },
      errors: ["conflict"],
      async handle({ senderId, params: { id } }) {
        await deleteBroadcast(db, senderId, id);
        return noContent();
      },
    }),
  ];
}

function sendRoute(deps: Parts): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/broadcasts/:id/send",
    operationId: "sendBroadcast",
    shows: "audience:read",
    stores: {},
    summary: "Send a broadcast",
    description:
      "Sends it now, or at `scheduledAt`. Its content and the filter of its segment are copied, so later changes of template and segment have no effect. Messages are made in small steps, so a contact that leaves in the meantime gets none. They leave after all transactional mail. 422 if its content does not show `{{ unsubscribeUrl }}` and the postal address that the project has, or shows values that contacts lack.",
    scope: "audience:write",
    alsoScope: "emails:send",
    costly: "content",
    body: Type.Object(
      {
        allowMissing: Type.Optional(
          Type.Boolean({ description: "Send also if contacts lack values that the content shows." }),
        ),
      },
      { title: "SendBroadcast" },
    ),
    bodyOptional: true,
    answers: { 200: BroadcastView },
    errors: ["not_found", "conflict", "permission_error", "validation_error"],
    async handle({ project, principal, params: { id }, body, now, record }) {
      const answer = (sent: WholeBroadcast) => ok(showBroadcast(sent));
      const acting = { project, by: principal, now };
      const { allowMissing = false } = body;
      return answer(await sendBroadcast(deps, acting, { id, allowMissing }, (sent) => record(answer(sent))));
    },
  });
}

const STEPS = {
  pause: {
    summary: "Pause a broadcast",
    description: "Its messages that wait are held until it is resumed. Those being delivered still leave.",
  },
  resume: {
    summary: "Resume a paused broadcast",
    description:
      "It continues where it was paused, or waits for its time again. The key of this request answers for its messages from then on, so it needs `emails:send`.",
    alsoScope: "emails:send",
  },
  cancel: {
    summary: "Cancel a broadcast",
    description:
      "No more messages are made, and those that wait become `rejected` with the reason `canceled`. Those being delivered still leave.",
  },
} as const;

function stepRoutes(deps: Parts): Route[] {
  return (["pause", "resume", "cancel"] as const).map((step) =>
    projectRoute({
      method: "POST",
      path: `/v1/broadcasts/:id/${step}`,
      operationId: `${step}Broadcast`,
      shows: "audience:read",
      evenFull: true,
      ...STEPS[step],
      scope: "audience:write",
      answers: { 200: BroadcastView },
      errors: ["not_found", "conflict"],
      async handle({ senderId, project, principal, params: { id }, now, record }) {
        const acting = { project, by: principal, now };
        const figures = (await figuresOfBroadcasts(deps.db, senderId, [id])).get(id);
        const answer = (stepped: WholeBroadcast) => ok(showBroadcast(stepped, figures));
        return answer(await stepBroadcast(deps, acting, { id, step }, (stepped) => record(answer(stepped))));
      },
    }),
  );
}
