import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { JSON_TYPE, raw } from "../routing/answer.ts";
import { compressedFile } from "../pipeline/compressed.ts";
import { openRoute, type Route } from "../routing/route.ts";
import { type DocPage, llmsRoutes } from "./llms.ts";
import type { Reference } from "./reference-text.ts";
import { INFO, openApiDocument } from "./openapi.ts";

// The page is the one of @elysiajs/swagger's Scalar provider. The rest of its plugin is not used: its document shows
// what Elysia checks, which is nothing here, and its routes are unknown to the access log, the metrics and 405.

/** The script of the reference page: `standalone.js` of @scalar/api-reference. */
export interface DocsFiles {
  script: Blob;
  /** Version of the package. It is part of the script's path, so that browsers may keep the script for good. */
  version: string;
  /** The pages of the documentation. */
  pages: readonly DocPage[];
}

export interface DocsDeps {
  docs: DocsFiles | null;
  config: { publicUrl: string };
  routes: readonly Route[];
}

/** The page's configuration. Parts of Scalar that talk to its makers' servers are off. */
const CONFIGURATION = {
  url: "/docs/json",
  // No theme of the plugin.
  customCss: "",
  documentDownloadType: "direct",
  authentication: { preferredSecurityScheme: "apiKey" },
  orderSchemaPropertiesBy: "preserve",
  persistAuth: false,
  withDefaultFonts: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
} as const;

/** Tells zod, which the script contains, not to try whether it may make code. The policy would report the try. */
const WITHOUT_EVAL = "globalThis.__zod_globalConfig={jitless:true};";

/** Returns the page. Its only inline script tag holds the configuration as attributes. */
async function pageOf(script: string): Promise<string> {
  const { ScalarRender } = await import("@elysiajs/swagger/scalar");
  return ScalarRender({ ...INFO, description: INFO.summary }, "", CONFIGURATION, script);
}

/**
 * Returns the policy of the page. It loads nothing from other origins. The only inline script that may run is the
 * white space in the page's own script tag, so text that is stored cannot run either (XSS).
 */
function policyOf(page: string): string {
  const inline = /<script(?![^>]*\ssrc=)[^>]*>([^<]*)<\/script>/.exec(page)?.[1] ?? "";
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${createHash("sha256").update(inline).digest("base64")}'`,
    // The script of the page adds style elements and sets style attributes.
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

/** Returns the script, compressed on the thread pool. */
async function compressedScript(file: Blob): Promise<Blob> {
  const script = Buffer.concat([Buffer.from(WITHOUT_EVAL), await file.bytes()]);
  return new Blob([await promisify(gzip)(script)]);
}

/** Returns a function that makes a value at its first call and gives it again after that. */
function once<Value>(make: () => Value): () => Value {
  let made: { value: Value } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** Returns `/docs`, the API reference as a page, and `/docs/json`, the OpenAPI document. */
export function docsRoutes({ docs, config, routes }: DocsDeps): Route[] {
  // Making the document takes ten times as long as any other answer without a key.
  const text = once(() => JSON.stringify(openApiDocument(routes)));
  const json = openRoute({
    method: "GET",
    path: "/docs/json",
    operationId: "openApiDocument",
    summary: "Get the API reference as an OpenAPI document",
    answers: { 200: "application/json" },
    handle: () => raw(text(), JSON_TYPE),
  });
  if (docs === null) return [json];
  const document = () => JSON.parse(text()) as Reference;
  return [json, ...pageRoutes(docs), ...llmsRoutes({ ...config, pages: docs.pages, document })];
}

function pageRoutes({ script, version }: DocsFiles): Route[] {
  const path = `/docs/scalar-${version}.js`;
  const page = once(() => pageOf(path));
  const compressed = once(() => compressedScript(script));
  return [
    openRoute({
      method: "GET",
      path: "/docs",
      operationId: "referencePage",
      summary: "Get the API reference as a page",
      answers: { 200: "text/html" },
      async handle() {
        const html = await page();
        return raw(html, "text/html; charset=utf-8", {
          "content-security-policy": policyOf(html),
          "referrer-policy": "no-referrer",
        });
      },
    }),
    openRoute({
      method: "GET",
      path,
      operationId: "referenceScript",
      summary: "Get the script of the reference page",
      answers: { 200: "text/javascript" },
      handle: async ({ request }) =>
        compressedFile(await compressed(), "text/javascript; charset=utf-8", request.headers),
    }),
  ];
}
