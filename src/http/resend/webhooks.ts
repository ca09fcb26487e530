import { Type } from "@sinclair/typebox";
import { invalid, notFound, existing } from "../../core/errors.ts";
import { RESEND_EVENTS, type ResendEvent } from "../../core/messages/resend-events.ts";
import {
  deleteWebhook,
  getWebhook,
  listWebhooks,
  updateWebhook,
  type Webhook,
  type WebhookChanges,
} from "../../store/webhooks/webhooks.ts";
import { allows } from "../../core/scopes.ts";
import type { Answer } from "../routing/answer.ts";
import type { CheckedRequest, Route } from "../routing/route.ts";
import { OneOf, showTime } from "../routing/schemas.ts";
import { MAX_URL_CHARS, webhookUrl } from "../../flows/webhooks/webhook-url.ts";
import {
  createWebhook,
  rotateWebhookSecret,
  type Signed,
  type WebhookDeps,
} from "../../flows/webhooks/webhooks.ts";
import { Given, ShortText } from "./form/given.ts";
import { listRoute, type Operations, type RequestWith, resendRoute, withoutNulls } from "./form/translate.ts";

const DIALECT = "resend";
/** Maximum number of event names in one webhook, duplicates included. */
const MAX_EVENTS = 100;
/** How long the previous secret also signs after a rotation, milliseconds. */
const GRACE_MS = 24 * 60 * 60 * 1000;

const WebhookFields = Type.Object({
  endpoint: Given(Type.String({ maxLength: MAX_URL_CHARS })),
  events: Given(Type.Array(ShortText, { maxItems: MAX_EVENTS })),
  status: Given(OneOf(["enabled", "disabled"])),
});

/** Returns the routes of `/resend/webhooks`, which sees only the webhooks that were made there. */
export function webhookRoutes(operations: Operations, deps: WebhookDeps): Route[] {
  const path = "/webhooks/:id";
  return [
    resendRoute(
      operations,
      {
        method: "POST",
        path: "/webhooks",
        operation: "createWebhook",
        summary: "Create a webhook",
        body: WebhookFields,
      },
      (context) => create(deps, context),
    ),
    listRoute(operations, {
      path: "/webhooks",
      operation: "listWebhooks",
      summary: "List webhooks",
      read: ({ senderId }, place, take) => listWebhooks(deps.db, senderId, place, take, DIALECT),
      show: (webhooks) => webhooks.map(showWebhook),
    }),
    resendRoute(
      operations,
      { method: "GET", path, operation: "getWebhook", summary: "Get a webhook" },
      async (context) => {
        const webhook = await ownWebhook(deps, context);
        // The secret is stored sealed and shown once, so it cannot be read here.
        return ok({ object: "webhook", ...showWebhook(webhook), signing_secret: "" });
      },
    ),
    resendRoute(
      operations,
      {
        method: "PATCH",
        path,
        operation: "updateWebhook",
        summary: "Update a webhook",
        body: WebhookFields,
      },
      (context) => update(deps, context),
    ),
    resendRoute(
      operations,
      { method: "DELETE", path, operation: "deleteWebhook", summary: "Delete a webhook" },
      async (context) => {
        const { senderId, id } = await ownWebhook(deps, context);
        if (!(await deleteWebhook(deps.db, senderId, id, context.now))) throw notFound("webhook");
        return ok({ object: "webhook", id, deleted: true });
      },
    ),
    resendRoute(
      operations,
      {
        method: "POST",
        path: `${path}/signing-secret/rotate`,
        operation: "rotateWebhookSecret",
        summary: "Rotate a webhook's secret. The previous one also signs for a day",
      },
      async ({ senderId, params, now, record }) => {
        const rotation = { id: params.id ?? "", until: now + GRACE_MS, dialect: DIALECT } as const;
        const owner = { senderId: senderId ?? "", now };
        return showSecret(
          await rotateWebhookSecret(deps, owner, rotation, (signed) => record(showSecret(signed))),
        );
      },
    ),
  ];
}

function ok(body: unknown): Answer {
  return { status: 200, body };
}

function showSecret({ webhook, secret }: Signed): Answer {
  return ok({ object: "webhook", id: webhook.id, signing_secret: secret });
}

async function create(deps: WebhookDeps, context: RequestWith<typeof WebhookFields>): Promise<Answer> {
  const { senderId, principal, now, record } = context;
  if (senderId === null || principal === null) throw new Error("a webhook needs a project");
  const { endpoint, events } = withoutNulls(context.body);
  const wanted = {
    url: endpointOf(deps, endpoint),
    eventTypes: eventsOf(events),
    dialect: DIALECT,
    content: null,
  } as const;
  const maker = { senderId, scopes: principal.scopes, now };
  return showSecret(await createWebhook(deps, maker, wanted, (signed) => record(showSecret(signed))));
}

function endpointOf({ urlRules }: WebhookDeps, endpoint: string | undefined): string {
  if (endpoint === undefined) throw invalid("endpoint", "must be a URL.", "missing_field");
  return webhookUrl(endpoint, urlRules);
}

/** Returns the events without duplicates. Throws 422 for one that Postrider never sends. */
function eventsOf(events: readonly string[] | undefined): ResendEvent[] {
  if (events === undefined || events.length === 0)
    throw invalid("events", "must be a list of event names.", "missing_field");
  const known = new Set<string>(RESEND_EVENTS);
  const unknown = events.findIndex((event) => !known.has(event));
  if (unknown >= 0)
    throw invalid(
      `events[${unknown}]`,
      `must be an event that Postrider sends: ${RESEND_EVENTS.join(", ")}.`,
    );
  return [...new Set(events as ResendEvent[])];
}

async function ownWebhook({ db }: WebhookDeps, { senderId, params }: CheckedRequest): Promise<Webhook> {
  const webhook = await getWebhook(db, senderId ?? "", params.id ?? "");
  if (webhook?.dialect !== DIALECT) throw notFound("webhook");
  return webhook;
}

async function update(deps: WebhookDeps, context: RequestWith<typeof WebhookFields>): Promise<Answer> {
  const { endpoint, events, status } = withoutNulls(context.body);
  const changes: WebhookChanges = {
    ...(endpoint === undefined ? {} : { url: endpointOf(deps, endpoint) }),
    ...(events === undefined ? {} : { eventTypes: eventsOf(events) }),
    ...(status === undefined ? {} : { enabled: status === "enabled" }),
  };
  const { senderId, id } = await ownWebhook(deps, context);
  const mayRead = allows(context.principal?.scopes ?? [], "emails:read");
  existing("webhook", await updateWebhook(deps.db, senderId, id, changes, mayRead, context.now));
  return ok({ object: "webhook", id });
}

function showWebhook({ id, url, enabled, eventTypes, createdAt }: Webhook): Record<string, unknown> {
  return {
    id,
    endpoint: url,
    status: enabled ? "enabled" : "disabled",
    events: eventTypes,
    created_at: showTime(createdAt),
  };
}
