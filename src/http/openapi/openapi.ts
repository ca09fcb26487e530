import type { Route } from "../route.ts";
import { ErrorEnvelope, errorResponses } from "./error-answers.ts";
import { HEADERS } from "./headers.ts";
import { operationOf, PARAMETERS } from "./operation.ts";
import { withNamedSchemas } from "./schemas.ts";
import { asShown, JSON_VALUE } from "./shown-format.ts";
import { shownTags } from "./tags.ts";
import { WEBHOOKS } from "./webhooks.ts";

const OPENAPI_VERSION = "3.1.0";

/** The name of the API. */
export const INFO = {
  title: "Postrider",
  version: "1",
  description: "Sends and receives email over a REST API.",
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
