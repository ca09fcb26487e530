import { SIGNATURE_HEADER } from "../../core/crypto/webhook-signature.ts";
import { WebhookEvent } from "../views/webhook-event.ts";

/** Requests that the service sends: the `webhooks` of the OpenAPI document. */
export const WEBHOOKS = {
  event: {
    post: {
      operationId: "webhookEvent",
      summary: "An event, pushed to each webhook that subscribes to its type",
      description:
        "Sent at least once, so recognize repeats by `id`. If the answer is not 2xx or does not come in time, the request is repeated later. 410 disables the webhook.",
      tags: ["webhooks"],
      parameters: [
        {
          name: SIGNATURE_HEADER,
          in: "header",
          required: true,
          description:
            "`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 of `<t>.<raw body>` with the webhook's signing secret. After a rotation, a second `v1` is made with the previous secret during its grace time. `t` is `createdAt` in seconds.",
          schema: { type: "string" },
        },
      ],
      requestBody: { required: true, content: { "application/json": { schema: WebhookEvent } } },
      responses: {
        "2XX": { description: "The event was received." },
        "400": { description: "The signature is not valid." },
        "410": { description: "The endpoint wants no more events." },
      },
      security: [],
    },
  },
};
