import type { Route } from "../routing/route.ts";
import { ErrorEnvelope, errorResponses } from "./error-answers.ts";
import { HEADERS } from "./headers.ts";
import { operationOf, PARAMETERS } from "./operation.ts";
import { withNamedSchemas } from "../routing/named-schemas.ts";
import { asShown, JSON_VALUE } from "../routing/shown-format.ts";
import { shownTags } from "./tags.ts";
import { SIGNATURE_HEADER } from "../../core/crypto/webhook-signature.ts";
import { exampleId } from "./examples.ts";
import { WebhookEvent } from "../views/webhook-event.ts";

const OPENAPI_VERSION = "3.1.0";

/** Rules of all operations, in Markdown. */
export const RULES = `- **Keys.** Each request has \`Authorization: Bearer <API key>\`. A project's key works for that project. With an account-wide key,
  \`X-Service-Product\` names the project.
- **Errors.** Every answer outside 2xx is \`{"error":{"type","message","code","param","issues","requestId"}}\`. \`type\` and \`code\` are for
  programs, \`message\` says how to fix it, and \`issues\` names every field at fault.
- **Lists.** A page is \`{"data","nextCursor"}\`. Pass \`nextCursor\` as \`cursor\` for the next one, until it is null.
- **Repeats.** A POST with an \`Idempotency-Key\` takes effect once: for 24 hours, the same key and body get the first answer again.
- **Limits.** \`RateLimit-Remaining\` counts down. 429 and 503 have \`Retry-After\`.
- **Additions.** Fields and operations may be added at any time. Ignore what you do not know.`;

/** Leads readers of the reference page to the guides. The index for programs lists each guide instead. */
const GUIDES = "- **Guides.** They are at [/docs/guide](/docs/guide).";

const SUMMARY = "Sends and receives email over a REST API.";
/** The API's name and description. */
export const INFO = {
  title: "Postrider",
  version: "1",
  summary: SUMMARY,
  description: `${SUMMARY}\n\n${RULES}\n${GUIDES}`,
};

/** Returns the OpenAPI document of the routes. Its server is the origin that the document came from. */
export function openApiDocument(routes: readonly Route[]): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    if (route.undocumented === true) continue;
    const path = route.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route) };
  }
  const named = withNamedSchemas({ paths, webhooks: WEBHOOKS });
  return asShown({
    openapi: OPENAPI_VERSION,
    info: INFO,
    servers: [{ url: "/" }],
    paths: named.part.paths,
    webhooks: named.part.webhooks,
    tags: shownTags(routes.map(({ path }) => path)),
    components: {
      securitySchemes: { apiKey: { type: "http", scheme: "bearer" } },
      schemas: { Error: ErrorEnvelope, JsonValue: JSON_VALUE, ...named.schemas },
      parameters: PARAMETERS,
      headers: HEADERS,
      responses: errorResponses(),
    },
  });
}

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
const WEBHOOKS = {
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
