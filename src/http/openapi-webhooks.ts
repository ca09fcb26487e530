import { SIGNATURE_HEADER } from "../core/signature.ts";
import { WebhookEvent } from "./views/webhook-event.ts";

/** What the service asks of others: the `webhooks` of an OpenAPI document. */
export const WEBHOOKS = {
  event: {
    post: {
      operationId: "webhookEvent",
      summary: "An event, pushed to each webhook that subscribes to its type",
      description:
        "Sent at least once: tell repeats by `id`. An answer outside 2xx, or none in time, is tried again later; 410 disables the webhook.",
      tags: ["webhooks"],
      parameters: [
        {
          name: SIGNATURE_HEADER,
          in: "header",
          required: true,
          description:
            "`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 of `<t>.<raw body>` under the webhook's signing secret; a second `v1` while a rotated secret is in its grace. `t` is the second of `createdAt`.",
          schema: { type: "string" },
        },
      ],
      requestBody: { required: true, content: { "application/json": { schema: WebhookEvent } } },
      responses: {
        "2XX": { description: "The event was taken." },
        "400": { description: "The signature is not genuine." },
        "410": { description: "No events are wanted any more." },
      },
      security: [],
    },
  },
};
