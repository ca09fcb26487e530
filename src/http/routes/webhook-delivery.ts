import { Type } from "@sinclair/typebox";
import { notFound } from "../../core/errors.ts";
import { deliveryBody, deliveryPayload } from "../../flows/webhooks/delivery-body.ts";
import type { PayloadDeps } from "../../flows/webhooks/payload.ts";
import { type DeliveryDetail, getDelivery } from "../../store/webhooks/delivery-log.ts";
import { ok } from "../routing/answer.ts";
import { projectRoute, type Route } from "../routing/route.ts";
import { Nullable, showTime, Timestamp } from "../routing/schemas.ts";
import {
  DeliverySchema,
  READ_CONTENT,
  requireWebhook,
  seesContent,
  showDelivery,
} from "./webhook-deliveries.ts";

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

/** Returns the route of one delivery with all that is known about it. */
export function webhookDeliveryRoute(deps: PayloadDeps): Route {
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
      const detail = await getDelivery(deps.db, senderId, webhook.id, params.deliveryId);
      if (detail === null) throw notFound("delivery");
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
