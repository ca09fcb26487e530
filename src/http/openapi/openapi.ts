import type { Route } from "../routing/route.ts";
import { ErrorEnvelope, errorResponses } from "./error-answers.ts";
import { HEADERS } from "./headers.ts";
import { operationOf, PARAMETERS } from "./operation.ts";
import { withNamedSchemas } from "../routing/named-schemas.ts";
import { asShown, JSON_VALUE } from "../routing/shown-format.ts";
import { shownTags } from "./tags.ts";
import { WEBHOOKS } from "./webhooks.ts";

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

const SUMMARY = "Sends and receives email over a REST API.";
/** The API's name and description. */
export const INFO = {
  title: "Postrider",
  version: "1",
  summary: SUMMARY,
  description: `${SUMMARY}\n\n${RULES}`,
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
