import { Type } from "@sinclair/typebox";
import { notFound, existing } from "../../core/errors.ts";
import { allows } from "../../core/scopes.ts";
import { EVENT_TYPES } from "../../core/messages/events.ts";
import { deliveryBody, deliveryPayload } from "../../flows/webhooks/delivery-body.ts";
import type { PayloadDeps } from "../../flows/webhooks/payload.ts";
import { replay, sendSample } from "../../flows/webhooks/sample.ts";
import {
  type DeliveryDetail,
  getDelivery,
  hasDelivery,
  listDeliveries,
  type LoggedDelivery,
} from "../../store/webhooks/delivery-log.ts";
import type { Db } from "../../store/engine/client.ts";
import { getWebhook, type Webhook } from "../../store/webhooks/webhooks.ts";
import { accepted, ok } from "../routing/answer.ts";
import { projectRoute, type Route } from "../routing/route.ts";
import { Nullable, OneOf, PAGE_QUERY, PageOf, showTime, Timestamp } from "../routing/schemas.ts";
import type { Outbox } from "../../flows/outbox.ts";

/** The scope that shows content of messages. */
const READ_CONTENT = "emails:read";

const Status = OneOf(["pending", "succeeded", "failed"]);
const LogQuery = Type.Object({
  ...PAGE_QUERY,
  status: Type.Optional(Status),
  messageId: Type.Optional(
    Type.String({
      maxLength: 64,
      description:
        "Only deliveries about this message. With a filter, one page searches at most 100000 deliveries, so it may be short or empty although more follow.",
      examples: ["msg_01hzy8"],
    }),
  ),
});

/** One entry of the log. */
const DeliverySchema = Type.Object(
  {
    id: Type.String({ description: "The `id` in the payload. It stays the same in every retry and replay." }),
    type: OneOf(EVENT_TYPES),
    messageId: Nullable(Type.String()),
    eventId: Nullable(Type.String()),
    status: Status,
    attempts: Type.Integer({ description: "Attempts so far. A replay starts again at 0." }),
    nextAttemptAt: Nullable(Timestamp),
    lastAttemptAt: Nullable(Timestamp),
    httpStatus: Nullable(Type.Integer({ description: "HTTP status of the last answer." })),
    response: Nullable(
      Type.String({
        description: `First 4 KiB of the last answer. Null if the key lacks \`${READ_CONTENT}\`.`,
      }),
    ),
    error: Nullable(Type.String({ description: "Why there was no answer." })),
    createdAt: Timestamp,
  },
  { title: "WebhookDelivery" },
);
const DeliveryDetailSchema = Type.Object(
  {
    ...DeliverySchema.properties,
    attemptLog: Type.Array(
      Type.Object({
        at: Timestamp,
        httpStatus: Nullable(Type.Integer()),
        response: Nullable(Type.String({ description: "First 512 characters of the answer." })),
        error: Nullable(Type.String()),
      }),
      { description: "Every attempt that has ended, oldest first; after replays the last 20." },
    ),
    request: Type.Object({
      url: Type.String({ description: "The webhook's URL now." }),
      body: Nullable(Type.String({ description: "The JSON that is signed." })),
    }),
  },
  { title: "WebhookDeliveryDetail" },
);

const Pending = Type.Object({ id: Type.String(), status: Type.Literal("pending") });

/** Returns whether a key with those scopes sees content of messages. An endpoint may repeat it in its answer. */
function seesContent(scopes: readonly string[]): boolean {
  return allows(scopes, READ_CONTENT);
}

/** Returns an entry of the log as the API shows it. */
function showDelivery(delivery: LoggedDelivery, withContent: boolean): Record<string, unknown> {
  return {
    ...delivery,
    response: withContent ? delivery.response : null,
    nextAttemptAt: showTime(delivery.nextAttemptAt),
    lastAttemptAt: showTime(delivery.lastAttemptAt),
    createdAt: showTime(delivery.createdAt),
  };
}

/** Returns the routes of a webhook's delivery log, replays and samples. */
export function webhookDeliveryRoutes(deps: Outbox & PayloadDeps): Route[] {
  return [logRoute(deps), replayRoute(deps), testRoute(deps), detailRoute(deps)];
}

/** Returns the project's webhook. Throws 404 if it has none with that id. */
export async function requireWebhook({ db }: { db: Db }, senderId: string, id: string): Promise<Webhook> {
  return existing("webhook", await getWebhook(db, senderId, id));
}

function logRoute(deps: Outbox): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/webhooks/:id/deliveries",
    operationId: "listWebhookDeliveries",
    summary: "List a webhook's deliveries, newest first",
    description: "What was pushed, with the answer of the endpoint.",
    scope: "webhooks:read",
    query: LogQuery,
    answers: { 200: PageOf(DeliverySchema) },
    errors: ["not_found"],
    async handle({ senderId, params, principal, query, page: openedPage }) {
      const shown = seesContent(principal.scopes);
      const { after, take, answer } = openedPage();
      const { status, messageId } = query;
      const webhook = await requireWebhook(deps, senderId, params.id);
      const filter = { status, messageId };
      const { rows, stoppedAt } = await listDeliveries(deps.db, senderId, webhook.id, filter, after, take);
      return ok(
        answer(
          rows,
          (row) => showDelivery(row, shown),
          (row) => row.id,
          stoppedAt,
        ),
      );
    },
  });
}

function replayRoute(deps: Outbox): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/webhooks/:id/deliveries/:deliveryId/replay",
    operationId: "replayWebhookDelivery",
    summary: "Replay a delivery",
    description:
      "Pushes the event again, with the same `id` and the whole retry schedule. 409 while the webhook is disabled or an attempt is in progress.",
    scope: "webhooks:write",
    answers: { 202: Pending },
    errors: ["not_found", "conflict"],
    async handle({ senderId, params, record }) {
      const webhook = await requireWebhook(deps, senderId, params.id);
      if (!(await hasDelivery(deps.db, senderId, webhook.id, params.deliveryId))) throw notFound("delivery");
      const answer = accepted({ id: params.deliveryId, status: "pending" });
      await replay(deps, webhook, params.deliveryId, record(answer));
      return answer;
    },
  });
}

function testRoute(deps: Outbox): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/webhooks/:id/test",
    operationId: "testWebhook",
    stores: {},
    summary: "Send a sample event to a webhook",
    description:
      "Pushes a made-up event of the given type, or else of the first type that the webhook subscribes to. It is flagged `testMode`.",
    scope: "webhooks:write",
    examples: { body: { type: "bounce" } },
    body: Type.Object({ type: Type.Optional(OneOf(EVENT_TYPES)) }),
    bodyOptional: true,
    answers: {
      202: Type.Object({ id: Type.String(), type: OneOf(EVENT_TYPES), testMode: Type.Literal(true) }),
    },
    errors: ["not_found", "conflict"],
    async handle({ senderId, params, body, record }) {
      const webhook = await requireWebhook(deps, senderId, params.id);
      let answer = accepted(null);
      await sendSample(deps, webhook, body.type ?? null, ({ id, type }) => {
        answer = accepted({ id, type, testMode: true });
        return record(answer);
      });
      return answer;
    },
  });
}

function detailRoute(deps: PayloadDeps): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/webhooks/:id/deliveries/:deliveryId",
    operationId: "getWebhookDelivery",
    summary: "Get a delivery with its request and every attempt",
    description: `\`request.body\` is the body of the last attempt. It is null once the message is gone, and has no content if the key lacks \`${READ_CONTENT}\`. What the endpoint answered is null then.`,
    scope: "webhooks:read",
    answers: { 200: DeliveryDetailSchema },
    errors: ["not_found"],
    async handle({ senderId, params, principal, expectAnswer }) {
      const webhook = await requireWebhook(deps, senderId, params.id);
      const detail = existing(
        "delivery",
        await getDelivery(deps.db, senderId, webhook.id, params.deliveryId),
      );
      const seen = seesContent(principal.scopes);
      const delivery = { ...detail, senderId, webhookId: webhook.id, dialect: webhook.dialect, tried: true };
      const payload = await deliveryPayload(deps, delivery);
      try {
        const data = payload?.octets(webhook.content && seen) ?? null;
        expectAnswer(data?.length ?? 0);
        const sentAt = detail.lastAttemptAt ?? detail.createdAt;
        const body = data === null ? null : textOf(deliveryBody(delivery, data, sentAt));
        return ok({ ...showDetail(detail, seen), request: { url: webhook.url, body } });
      } finally {
        payload?.release();
      }
    },
  });
}

function showDetail(
  { data: _, attemptLog, ...delivery }: DeliveryDetail,
  withContent: boolean,
): Record<string, unknown> {
  return {
    ...showDelivery(delivery, withContent),
    attemptLog: attemptLog.map((entry) => ({
      ...entry,
      response: withContent ? entry.response : null,
      at: showTime(entry.at),
    })),
  };
}

function textOf(body: readonly Uint8Array[]): string {
  return Buffer.concat(body).toString("utf8");
}
