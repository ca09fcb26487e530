import { type Static, Type } from "@sinclair/typebox";
import { AppError, invalid, notFound, readAll, existing } from "../../core/errors.ts";
import { EVENT_TYPES } from "../../core/messages/events.ts";
import { RESEND_EVENTS } from "../../core/messages/resend-events.ts";
import type { Db } from "../../store/engine/client.ts";
import {
  deleteWebhook,
  getWebhook,
  listWebhooks,
  updateWebhook,
  type Webhook,
  type WebhookChanges,
} from "../../store/webhooks/webhooks.ts";
import { created, noContent, ok } from "../routing/answer.ts";
import { projectRoute, type Route } from "../routing/route.ts";
import { Nullable, OneOf, PAGE_QUERY, PageOf, ShownOneOf, showTime, Timestamp } from "../routing/schemas.ts";
import { URI } from "../routing/shown-format.ts";
import {
  createWebhook,
  maySendContent,
  READ,
  rotateWebhookSecret,
  type Signed,
  type WebhookDeps,
} from "../../flows/webhooks/webhooks.ts";
import { webhookUrl } from "../../flows/webhooks/webhook-url.ts";

/** Longest time for which a replaced secret also signs, seconds. */
const MAX_GRACE_SECONDS = 604_800;
/** Subscribes to all event types. No other type may be named with it. */
const ALL_TYPES = "*";

const EventTypes = Type.Array(OneOf([...EVENT_TYPES, ALL_TYPES]), {
  minItems: 1,
  maxItems: 4 * EVENT_TYPES.length,
  description: 'Event types to push, or `["*"]` for all.',
  examples: [["delivery", "bounce"]],
});
const WebhookSchema = Type.Object(
  {
    id: Type.String(),
    url: Type.String(URI),
    enabled: Type.Boolean(),
    eventTypes: Type.Array(ShownOneOf([...EVENT_TYPES, ALL_TYPES, ...RESEND_EVENTS])),
    content: Type.Boolean({
      description:
        "Whether events carry content. Without it they lack subject, bodies, headers, links, replies of other servers, and every address except the recipient's.",
    }),
    signingSecret: Type.String({
      description: "Shown once, when it is created or rotated. Empty otherwise.",
    }),
    disabledReason: Nullable(Type.String({ description: "Why the service disabled the webhook." })),
    failingSince: Nullable({
      ...Timestamp,
      description: "Since when every push has failed. Null: the last one has not.",
    }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: "Webhook" },
);
const WebhookUrl = Type.String({
  expected: "an https:// URL",
  examples: ["https://example.com/webhooks"],
});
const CreateWebhook = Type.Object({
  url: WebhookUrl,
  eventTypes: EventTypes,
  content: Type.Optional(
    Type.Boolean({
      description: `If absent: true if the key has ${READ}. A key without that scope cannot set it to true.`,
    }),
  ),
});
const UpdateWebhook = Type.Object({
  url: Type.Optional(WebhookUrl),
  enabled: Type.Optional(
    Type.Boolean({
      description:
        "While it is false, events create no deliveries, and waiting deliveries fail when they are due. After it is true again, `/replay` sends those.",
    }),
  ),
  eventTypes: Type.Optional(EventTypes),
  content: Type.Optional(
    Type.Boolean({
      description: `True needs a key with ${READ}. If a key without that scope changes \`url\` or \`eventTypes\`, this becomes false.`,
    }),
  ),
});
const RotateSecret = Type.Object({
  graceSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_GRACE_SECONDS,
      default: 0,
      description: "For how many seconds the previous secret also signs.",
    }),
  ),
});

/** Returns a webhook as the API shows it; with its secret only when that is new. */
function show(webhook: Webhook, signingSecret = ""): Static<typeof WebhookSchema> {
  return {
    id: webhook.id,
    url: webhook.url,
    enabled: webhook.enabled,
    eventTypes: webhook.eventTypes,
    content: webhook.content,
    signingSecret,
    disabledReason: webhook.disabledReason,
    failingSince: showTime(webhook.failingSince),
    createdAt: showTime(webhook.createdAt),
    updatedAt: showTime(webhook.updatedAt),
  };
}

/** Returns the types without duplicates. */
function eventTypesOf(given: readonly string[]): string[] {
  const types = [...new Set(given)];
  if (types.length > 1 && types.includes(ALL_TYPES))
    throw invalid("eventTypes", 'must not name other types next to "*", which stands for all of them.');
  return types;
}

function changesOf({ urlRules }: WebhookDeps, body: Static<typeof UpdateWebhook>): WebhookChanges {
  const { url, enabled, eventTypes, content } = body;
  const [address, types] = readAll(
    () => (url === undefined ? {} : { url: webhookUrl(url, urlRules) }),
    () => (eventTypes === undefined ? {} : { eventTypes: eventTypesOf(eventTypes) }),
  );
  const rest = {
    ...(enabled === undefined ? {} : { enabled }),
    ...(content === undefined ? {} : { content }),
  };
  return { ...address, ...rest, ...types };
}

/** Throws 409 if the event types of a webhook would be those of another dialect. */
async function requireOwnDialect(db: Db, senderId: string, id: string): Promise<void> {
  const webhook = await getWebhook(db, senderId, id);
  if (webhook?.dialect === "resend")
    throw new AppError(
      "conflict",
      "This webhook has Resend's events. Change them at /resend/webhooks/{id}.",
      {
        code: "invalid_state",
        param: "eventTypes",
      },
    );
}

/** Returns the routes of `/v1/webhooks`, without the delivery log. */
export function webhookRoutes(deps: WebhookDeps): Route[] {
  return [...collectionRoutes(deps), ...itemRoutes(deps), rotateRoute(deps)];
}

function collectionRoutes(deps: WebhookDeps): Route[] {
  const { db, urlRules } = deps;
  return [
    projectRoute({
      method: "POST",
      path: "/v1/webhooks",
      operationId: "createWebhook",
      stores: { adds: ["webhooks"] },
      summary: "Create a webhook",
      description: "Only this answer has the `signingSecret`. The URL must be https and public.",
      scope: "webhooks:write",
      body: CreateWebhook,
      rules: (body: Partial<Static<typeof CreateWebhook>>) => changesOf(deps, body),
      answers: { 201: WebhookSchema },
      secretAnswer: true,
      async handle({ senderId, principal, body, now, record }) {
        const [url, eventTypes] = readAll(
          () => webhookUrl(body.url, urlRules),
          () => eventTypesOf(body.eventTypes),
        );
        const wanted = { url, eventTypes, content: body.content ?? null, dialect: "postrider" } as const;
        const maker = { senderId, scopes: principal.scopes, now };
        const answer = ({ webhook, secret }: Signed) => created(show(webhook, secret));
        return answer(await createWebhook(deps, maker, wanted, (signed) => record(answer(signed))));
      },
    }),
    projectRoute({
      method: "GET",
      path: "/v1/webhooks",
      operationId: "listWebhooks",
      summary: "List webhooks, newest first",
      description: "Without their signing secrets.",
      scope: "webhooks:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(WebhookSchema) },
      async handle({ senderId, page }) {
        const { after, take, answer } = page();
        const rows = await listWebhooks(db, senderId, after, take);
        return ok(
          answer(
            rows,
            (row) => show(row),
            ({ id }) => id,
          ),
        );
      },
    }),
  ];
}

function itemRoutes(deps: WebhookDeps): Route[] {
  const { db } = deps;
  return [
    projectRoute({
      method: "GET",
      path: "/v1/webhooks/:id",
      operationId: "getWebhook",
      summary: "Get a webhook",
      description: "Without its signing secret.",
      scope: "webhooks:read",
      answers: { 200: WebhookSchema },
      async handle({ senderId, params }) {
        return ok(show(existing("webhook", await getWebhook(db, senderId, params.id))));
      },
    }),
    projectRoute({
      method: "PATCH",
      path: "/v1/webhooks/:id",
      operationId: "updateWebhook",
      summary: "Update a webhook",
      description: "Fields that are absent stay as they are. The signing secret does not change.",
      scope: "webhooks:write",
      body: UpdateWebhook,
      rules: (body: Static<typeof UpdateWebhook>) => changesOf(deps, body),
      answers: { 200: WebhookSchema },
      async handle({ senderId, principal, params, body, now }) {
        const mayRead = maySendContent(principal.scopes, body.content);
        const changes = changesOf(deps, body);
        if (changes.eventTypes !== undefined) await requireOwnDialect(db, senderId, params.id);
        return ok(
          show(existing("webhook", await updateWebhook(db, senderId, params.id, changes, mayRead, now))),
        );
      },
    }),
    projectRoute({
      method: "DELETE",
      path: "/v1/webhooks/:id",
      operationId: "deleteWebhook",
      summary: "Delete a webhook and its log",
      description: "Deliveries that wait are not sent any more.",
      scope: "webhooks:write",
      answers: { 204: null },
      async handle({ senderId, params, now }) {
        if (!(await deleteWebhook(db, senderId, params.id, now))) throw notFound("webhook");
        return noContent();
      },
    }),
  ];
}

function rotateRoute(deps: WebhookDeps): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/webhooks/:id/rotate-secret",
    operationId: "rotateWebhookSecret",
    summary: "Rotate a webhook's signing secret",
    description: "The answer has the new `signingSecret`.",
    scope: "webhooks:write",
    body: RotateSecret,
    bodyOptional: true,
    answers: { 200: WebhookSchema },
    secretAnswer: true,
    async handle({ senderId, params, body, now, record }) {
      const rotation = { id: params.id, until: now + (body.graceSeconds ?? 0) * 1000 };
      const answer = ({ webhook, secret }: Signed) => ok(show(webhook, secret));
      const recorded = (signed: Signed) => record(answer(signed));
      return answer(await rotateWebhookSecret(deps, { senderId, now }, rotation, recorded));
    },
  });
}
