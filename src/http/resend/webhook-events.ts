import type { EventType } from "../../core/messages/events.ts";
import { resendName } from "../../core/messages/resend-events.ts";
import type { Db } from "../../store/engine/client.ts";
import { listDeliveries } from "../../store/webhooks/delivery-log.ts";
import type { CheckedRequest, Route } from "../routing/route.ts";
import { requireWebhook } from "../routes/webhook-deliveries.ts";
import { showTime } from "../routing/schemas.ts";
import { listBody, listRoute, type Operations, translated } from "./form/translate.ts";

interface Delivery {
  id: string;
  type: EventType;
  status: string;
  nextAttemptAt: string | null;
  createdAt: string;
}

interface DeliveryDetail extends Delivery {
  attemptLog: { at: string; httpStatus: number | null; response: string | null; error: string | null }[];
  request: { body: string | null };
}

const STATUSES: Readonly<Record<string, string>> = { succeeded: "success" };

/** Returns the routes of the events of Resend's webhooks: the entries of their delivery log. */
export function webhookEventRoutes(operations: Operations, db: Db): Route[] {
  const path = "/webhooks/:id/events";
  const ask = ({ params: { id = "", event = "" } }: CheckedRequest) => ({
    params: { id, deliveryId: event },
  });
  const one = { method: "GET", operation: "getWebhookDelivery", ask } as const;
  return [
    listRoute(operations, {
      path,
      operation: "listWebhookDeliveries",
      summary: "List the events of a webhook",
      async read({ senderId, params: { id = "" } }, place, take) {
        const webhook = await requireWebhook({ db }, senderId, id);
        return listDeliveries(db, senderId, webhook.id, {}, place, take);
      },
      show: (deliveries) =>
        deliveries.map((delivery) => showEvent({ ...delivery, createdAt: showTime(delivery.createdAt) })),
    }),
    translated(operations, {
      ...one,
      path: `${path}/:event`,
      summary: "Get an event of a webhook",
      answer: (delivery: DeliveryDetail) => ({
        object: "webhook_event",
        ...showEvent(delivery),
        next_attempt_at: delivery.nextAttemptAt,
        payload: JSON.parse(delivery.request.body ?? "null"),
      }),
    }),
    translated(operations, {
      ...one,
      path: `${path}/:event/attempts`,
      summary: "List the attempts of an event",
      answer: ({ id, attemptLog }: DeliveryDetail) =>
        listBody(
          attemptLog.map((entry, at) => showAttempt(id, at, entry)),
          false,
        ),
    }),
    translated(operations, {
      method: "POST",
      path: `${path}/:event/replay`,
      operation: "replayWebhookDelivery",
      ask,
      summary: "Push an event again",
      answer: ({ id }: { id: string }) => ({ object: "webhook_event", id }),
    }),
  ];
}

/** Returns an entry of the log. Its list has no details of the event, so a rejection counts as suppressed. */
function showEvent({
  id,
  type,
  status,
  createdAt,
}: Omit<Delivery, "nextAttemptAt">): Record<string, unknown> {
  const name = resendName({ type, data: USUAL[type] ?? {} }) ?? `email.${type}`;
  return { id, type: name, created_at: createdAt, status: STATUSES[status] ?? status };
}

/** Details that give a type its name in Resend's dialect. */
const USUAL: Partial<Readonly<Record<EventType, Record<string, unknown>>>> = {
  accepted: { accepted: {} },
  sending: { sending: { attempt: 1 } },
  rejected: { rejected: { reason: "suppressed" } },
};

function showAttempt(
  id: string,
  at: number,
  { at: sentAt, httpStatus, response, error }: DeliveryDetail["attemptLog"][number],
): Record<string, unknown> {
  return {
    id: `${id}_${at + 1}`,
    http_status_code: httpStatus ?? 0,
    sent_at: sentAt,
    response: response ?? error ?? "",
  };
}
