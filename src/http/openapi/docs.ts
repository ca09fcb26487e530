import { JSON_TYPE, raw } from "../answer.ts";
import { openApiDocument } from "./openapi.ts";
import { openRoute, type Route } from "../route.ts";

// This does not use the page of @elysiajs/swagger, because that page loads its script from unpkg.com and starts it
// with an inline script. It works neither without the internet nor under our Content-Security-Policy. Its document
// describes what Elysia checks, which is nothing here. It would also add 60 ms to each start, on routes that the
// access log, the metrics and 405 do not know.

/** Script and style of the reference page: `swagger-ui-bundle.js` and `swagger-ui.css` of swagger-ui-dist. */
export interface DocsFiles {
  script: Blob;
  style: Blob;
}

export interface DocsDeps {
  docs: DocsFiles | null;
  config: { publicUrl: string };
  routes: readonly Route[];
}

/** The page loads nothing from other origins and runs no inline script, so stored text cannot run either (XSS). */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  // The script of the page sets style attributes.
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Caching of the files. They do not change while the process runs. */
const CACHE_CONTROL = "public, max-age=3600";

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Postrider API</title>
<link rel="stylesheet" href="/docs/page.css">
</head>
<body>
<div id="reference"></div>
<script src="/docs/page.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

const START = `SwaggerUIBundle({
  url: "/docs/json",
  dom_id: "#reference",
  deepLinking: true,
  validatorUrl: null,
  persistAuthorization: false,
});
`;

function file(path: string, operationId: string, content: Blob | string, contentType: string): Route {
  return openRoute({
    method: "GET",
    path,
    operationId,
    summary: "Get a file of the reference page",
    answers: { 200: contentType },
    handle: () => raw(content, contentType, { "cache-control": CACHE_CONTROL }),
  });
}

/** Returns `/docs`, the API reference as a page, and `/docs/json`, the OpenAPI document. */
export function docsRoutes({ docs, config, routes }: DocsDeps): Route[] {
  // The document is made at the first request and shared by all. Making it takes ten times as long as any other
  // answer without a key.
  let document: Blob | null = null;
  const json = openRoute({
    method: "GET",
    path: "/docs/json",
    operationId: "openApiDocument",
    summary: "Get the API reference as an OpenAPI document",
    answers: { 200: "application/json" },
    handle() {
      document ??= new Blob([JSON.stringify(openApiDocument(routes, config.publicUrl))]);
      return raw(document, JSON_TYPE);
    },
  });
  if (docs === null) return [json];
  const page = openRoute({
    method: "GET",
    path: "/docs",
    operationId: "referencePage",
    summary: "Get the API reference as a page",
    answers: { 200: "text/html" },
    handle: () =>
      raw(PAGE, "text/html; charset=utf-8", {
        "content-security-policy": CONTENT_SECURITY_POLICY,
        "referrer-policy": "no-referrer",
      }),
  });
  return [
    page,
    json,
    file("/docs/page.js", "referenceScript", docs.script, "text/javascript; charset=utf-8"),
    file("/docs/page.css", "referenceStyle", docs.style, "text/css; charset=utf-8"),
    file("/docs/start.js", "referenceStart", START, "text/javascript; charset=utf-8"),
  ];
}
