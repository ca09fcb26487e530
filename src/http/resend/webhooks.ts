import { Type } from "@sinclair/typebox";
import { invalid, notFound } from "../../core/errors.ts";
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
import { showTime } from "../routing/schemas.ts";
import { webhookUrl } from "../pipeline/webhook-url.ts";
import { createWebhook, rotateWebhookSecret, type WebhookDeps } from "../pipeline/webhook-saving.ts";
import { fieldsOf, ID_PAGE, listBody, type Operations, resendRoute } from "./translate.ts";

const DIALECT = "resend";
/** How long the previous secret also signs after a rotation, milliseconds. */
const GRACE_MS = 24 * 60 * 60 * 1000;

/** Returns the routes of `/resend/webhooks`, which sees only the webhooks that were made there. */
export function webhookRoutes(operations: Operations, deps: WebhookDeps): Route[] {
  const path = "/webhooks/:id";
  return [
    resendRoute(
      operations,
      { method: "POST", path: "/webhooks", operation: "createWebhook", summary: "Create a webhook" },
      (context) => create(deps, context),
    ),
    resendRoute(
      operations,
      {
        ...{ method: "GET", path: "/webhooks", operation: "listWebhooks", summary: "List webhooks" },
        query: Type.Object(ID_PAGE),
      },
      (context) => list(deps, context),
    ),
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
      { method: "PATCH", path, operation: "updateWebhook", summary: "Update a webhook" },
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
        ...{ method: "POST", path: `${path}/signing-secret/rotate`, operation: "rotateWebhookSecret" },
        summary: "Rotate a webhook's secret. The previous one also signs for a day",
      },
      (context) =>
        rotateWebhookSecret(
          deps,
          context,
          { id: context.params.id ?? "", until: context.now + GRACE_MS, dialect: DIALECT },
          ({ id }, secret) => ok({ object: "webhook", id, signing_secret: secret }),
        ),
    ),
  ];
}

function ok(body: unknown): Answer {
  return { status: 200, body };
}

function create(deps: WebhookDeps, context: CheckedRequest): Promise<Answer> {
  const { endpoint, events } = fieldsOf(context.body);
  const wanted = {
    url: endpointOf(deps, endpoint),
    eventTypes: eventsOf(events),
    dialect: DIALECT,
    content: null,
  };
  return createWebhook(deps, context, { ...wanted, dialect: DIALECT }, ({ id }, secret) =>
    ok({ object: "webhook", id, signing_secret: secret }),
  );
}

function endpointOf({ urlRules }: WebhookDeps, endpoint: unknown): string {
  if (typeof endpoint !== "string") throw invalid("endpoint", "must be a URL.", "missing_field");
  return webhookUrl(endpoint, urlRules);
}

/** Returns the events without duplicates. Throws 422 for one that Postrider never sends. */
function eventsOf(events: unknown): ResendEvent[] {
  if (!Array.isArray(events) || events.length === 0)
    throw invalid("events", "must be a list of event names.", "missing_field");
  const known = new Set<unknown>(RESEND_EVENTS);
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

async function list({ db }: WebhookDeps, { senderId, query }: CheckedRequest): Promise<Answer> {
  const { limit = 20, after, before } = query as { limit?: number; after?: string; before?: string };
  if (before !== undefined) throw invalid("before", "is not supported for webhooks. Use after.");
  const rows = await listWebhooks(db, senderId ?? "", after ?? null, limit + 1, DIALECT);
  return ok(listBody(rows.slice(0, limit).map(showWebhook), rows.length > limit));
}

async function update(deps: WebhookDeps, context: CheckedRequest): Promise<Answer> {
  const { endpoint, events, status } = fieldsOf(context.body);
  if (status !== undefined && status !== "enabled" && status !== "disabled")
    throw invalid("status", 'must be "enabled" or "disabled".');
  const changes: WebhookChanges = {
    ...(endpoint === undefined ? {} : { url: endpointOf(deps, endpoint) }),
    ...(events === undefined ? {} : { eventTypes: eventsOf(events) }),
    ...(status === undefined ? {} : { enabled: status === "enabled" }),
  };
  const { senderId, id } = await ownWebhook(deps, context);
  const mayRead = allows(context.principal?.scopes ?? [], "emails:read");
  const webhook = await updateWebhook(deps.db, senderId, id, changes, mayRead, context.now);
  if (webhook === null) throw notFound("webhook");
  return ok({ object: "webhook", id });
}

function showWebhook({ id, url, enabled, eventTypes, createdAt }: Webhook): Record<string, unknown> {
  return {
    ...{ id, endpoint: url, status: enabled ? "enabled" : "disabled", events: eventTypes },
    created_at: showTime(createdAt),
  };
}
