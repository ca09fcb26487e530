import { JSON_TYPE, raw } from "./answer.ts";
import { openApiDocument } from "./openapi.ts";
import { openRoute, type Route } from "./route.ts";

// Why not by @elysiajs/swagger, which the stack names and package.json has: its swagger-ui page takes its script from unpkg.com, at
// an address that no option changes, and is started by a script within its text, so that it works neither without the internet nor
// under our Content-Security-Policy. Its document describes what Elysia itself checks, which here is nothing: it would hand out
// ours as it was given it, at 60 ms of each start, on routes that the access log, the metrics and 405 do not know.

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

/** The page loads nothing from elsewhere and runs no script within its text: stored text cannot run either (XSS). */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  // The page's script sets style attributes.
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The files do not change while the process runs, in seconds. */
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
    summary: "A file of the reference page",
    answers: { 200: contentType },
    handle: () => raw(content, contentType, { "cache-control": CACHE_CONTROL }),
  });
}

/** `/docs`, the API's reference as a page, and `/docs/json`, the same as an OpenAPI document. */
export function docsRoutes({ docs, config, routes }: DocsDeps): Route[] {
  // Made when it is first wanted, and one for all who are sent it: to write it takes ten times as long as any other answer to a stranger.
  let document: Blob | null = null;
  const json = openRoute({
    method: "GET",
    path: "/docs/json",
    operationId: "openApiDocument",
    summary: "The API's reference as an OpenAPI document",
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
    summary: "The API's reference as a page",
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
