import { SIGNATURE_HEADER } from "../../core/crypto/webhook-signature.ts";
import { exampleId } from "./examples.ts";
import { WebhookEvent } from "../views/webhook-event.ts";

const EXAMPLE = {
  id: exampleId("dlv"),
  type: "bounce",
  createdAt: "2026-01-31T09:30:00.000Z",
  data: {
    messageId: exampleId("msg"),
    senderId: exampleId("snd"),
    email: "ben@example.com",
    occurredAt: "2026-01-31T09:29:58.120Z",
    tags: [],
    bounce: {
      type: "hard",
      reason: null,
      category: "mailbox",
      smtpCode: 550,
      enhancedCode: "5.1.1",
      diagnostic: "550 5.1.1 No such user",
      mx: "mx.example.com",
    },
  },
};

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
      requestBody: {
        required: true,
        content: { "application/json": { schema: WebhookEvent, example: EXAMPLE } },
      },
      responses: {
        "2XX": { description: "The event was received." },
        "400": { description: "The signature is not valid." },
        "410": { description: "The endpoint wants no more events." },
      },
      security: [],
    },
  },
};
