import { randomBytes } from "node:crypto";
import { type Static, Type } from "@sinclair/typebox";
import { invalid, notFound, readAll } from "../../core/errors.ts";
import { EVENT_TYPES } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import { seal } from "../../core/secretbox.ts";
import type { Db } from "../../store/engine/client.ts";
import { standingWebhookGuard } from "../../store/delivery-log.ts";
import { allOrNothing, isGuardBroken } from "../../store/outbox.ts";
import {
  deleteWebhook,
  getWebhook,
  insertWebhook,
  listWebhooks,
  rotateSecret,
  updateWebhook,
  type Webhook,
  type WebhookChanges,
} from "../../store/webhooks.ts";
import { created, noContent, ok } from "../answer.ts";
import { projectRoute, type Route } from "../route.ts";
import { Nullable, OneOf, PAGE_QUERY, PageOf, showTime, Timestamp } from "../schemas.ts";
import { URI } from "../shown-format.ts";
import { type WebhookUrlRules, webhookUrl } from "../webhook-url.ts";

/** Random bytes of a signing secret: 43 characters in base64url. */
const SECRET_BYTES = 32;
/** Longest time for which a secret replaced signs along, seconds. */
const MAX_GRACE_SECONDS = 604_800;
/** Stands, alone, for all event types. */
const ALL_TYPES = "*";

export interface WebhookDeps {
  db: Db;
  /** Seals signing secrets at rest. */
  boxKey: Uint8Array;
  urlRules: WebhookUrlRules;
}

const EventTypes = Type.Array(OneOf([...EVENT_TYPES, ALL_TYPES]), {
  minItems: 1,
  maxItems: 4 * EVENT_TYPES.length,
  description: 'Event types to push, or `["*"]` for all.',
});
const WebhookSchema = Type.Object(
  {
    id: Type.String(),
    url: Type.String(URI),
    enabled: Type.Boolean(),
    eventTypes: Type.Array(Type.String()),
    signingSecret: Type.String({ description: "Shown once, when it is made; empty ever after." }),
    disabledReason: Nullable(Type.String({ description: "Why the service switched it off." })),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: "Webhook" },
);
const CreateWebhook = Type.Object({ url: Type.String(), eventTypes: EventTypes });
const UpdateWebhook = Type.Object({
  url: Type.Optional(Type.String()),
  enabled: Type.Optional(
    Type.Boolean({
      description:
        "While it is off no event is noted for it, and the deliveries that still wait fail as they come due; `/replay` sends those once it is on again.",
    }),
  ),
  eventTypes: Type.Optional(EventTypes),
});
const RotateSecret = Type.Object({
  graceSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_GRACE_SECONDS,
      default: 0,
      description: "How long the secret before signs along.",
    }),
  ),
});

function newSigningSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString("base64url")}`;
}

function show(webhook: Webhook, signingSecret = ""): Static<typeof WebhookSchema> {
  return {
    id: webhook.id,
    url: webhook.url,
    enabled: webhook.enabled,
    eventTypes: webhook.eventTypes,
    signingSecret,
    disabledReason: webhook.disabledReason,
    createdAt: showTime(webhook.createdAt),
    updatedAt: showTime(webhook.updatedAt),
  };
}

/** The types, each once. */
function eventTypesOf(given: readonly string[]): string[] {
  const types = [...new Set(given)];
  if (types.length > 1 && types.includes(ALL_TYPES))
    throw invalid("eventTypes", '"*" stands for all types, so no other may be named beside it.');
  return types;
}

function changesOf({ urlRules }: WebhookDeps, body: Static<typeof UpdateWebhook>): WebhookChanges {
  const { url, enabled, eventTypes } = body;
  const [address, types] = readAll(
    () => (url === undefined ? {} : { url: webhookUrl(url, urlRules) }),
    () => (eventTypes === undefined ? {} : { eventTypes: eventTypesOf(eventTypes) }),
  );
  return { ...address, ...(enabled === undefined ? {} : { enabled }), ...types };
}

/** `/v1/webhooks`, the delivery log excepted. */
export function webhookRoutes(deps: WebhookDeps): Route[] {
  return [...collectionRoutes(deps), ...itemRoutes(deps), rotateRoute(deps)];
}

function collectionRoutes(deps: WebhookDeps): Route[] {
  const { db, boxKey, urlRules } = deps;
  return [
    projectRoute({
      method: "POST",
      path: "/v1/webhooks",
      operationId: "createWebhook",
      summary: "Subscribe an endpoint to events",
      scope: "webhooks:write",
      body: CreateWebhook,
      rules: (body: Partial<Static<typeof CreateWebhook>>) => changesOf(deps, body),
      answers: { 201: WebhookSchema },
      secretAnswer: true,
      async handle({ senderId, body, now, record }) {
        const [url, eventTypes] = readAll(
          () => webhookUrl(body.url, urlRules),
          () => eventTypesOf(body.eventTypes),
        );
        const secret = newSigningSecret();
        const webhook: Webhook = {
          id: newId("whk", now),
          senderId,
          url,
          enabled: true,
          eventTypes,
          disabledReason: null,
          createdAt: now,
          updatedAt: now,
        };
        const answer = created(show(webhook, secret));
        await db.write([insertWebhook(webhook, seal(boxKey, secret)), ...record(answer)]);
        return answer;
      },
    }),
    projectRoute({
      method: "GET",
      path: "/v1/webhooks",
      operationId: "listWebhooks",
      summary: "List webhooks, newest first",
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
      summary: "Read a webhook",
      scope: "webhooks:read",
      answers: { 200: WebhookSchema },
      async handle({ senderId, params }) {
        const webhook = await getWebhook(db, senderId, params.id);
        if (webhook === null) throw notFound("webhook");
        return ok(show(webhook));
      },
    }),
    projectRoute({
      method: "PATCH",
      path: "/v1/webhooks/:id",
      operationId: "updateWebhook",
      summary: "Change a webhook; its secret stays",
      scope: "webhooks:write",
      body: UpdateWebhook,
      rules: (body: Static<typeof UpdateWebhook>) => changesOf(deps, body),
      answers: { 200: WebhookSchema },
      async handle({ senderId, params, body, now }) {
        const webhook = await updateWebhook(db, senderId, params.id, changesOf(deps, body), now);
        if (webhook === null) throw notFound("webhook");
        return ok(show(webhook));
      },
    }),
    projectRoute({
      method: "DELETE",
      path: "/v1/webhooks/:id",
      operationId: "deleteWebhook",
      summary: "Delete a webhook and its log",
      scope: "webhooks:write",
      answers: { 204: null },
      async handle({ senderId, params, now }) {
        if (!(await deleteWebhook(db, senderId, params.id, now))) throw notFound("webhook");
        return noContent();
      },
    }),
  ];
}

function rotateRoute({ db, boxKey }: WebhookDeps): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/webhooks/:id/rotate-secret",
    operationId: "rotateWebhookSecret",
    summary: "Put a new signing secret in place",
    scope: "webhooks:write",
    body: RotateSecret,
    bodyOptional: true,
    answers: { 200: WebhookSchema },
    secretAnswer: true,
    async handle({ senderId, params, body, now, record }) {
      const webhook = await getWebhook(db, senderId, params.id);
      if (webhook === null) throw notFound("webhook");
      const secret = newSigningSecret();
      const until = now + (body.graceSeconds ?? 0) * 1000;
      const answer = ok(show({ ...webhook, updatedAt: now }, secret));
      const write = db.write([
        allOrNothing(standingWebhookGuard(senderId, webhook.id)),
        rotateSecret(senderId, webhook.id, seal(boxKey, secret), until, now),
        ...record(answer),
      ]);
      await write.catch((error: unknown) => {
        // Deleted since it was read: a secret that signs nothing must not be handed out.
        throw isGuardBroken(error) ? notFound("webhook") : error;
      });
      return answer;
    },
  });
}
