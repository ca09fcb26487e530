import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { JSON_TYPE, raw } from "../routing/answer.ts";
import { compressedFile } from "../pipeline/compressed.ts";
import { openRoute, type Route } from "../routing/route.ts";
import { guideRoutes } from "./guides.ts";
import { type DocPage, llmsRoutes } from "./llms.ts";
import type { Reference } from "./reference-text.ts";
import { openApiDocument } from "./openapi.ts";
import { referencePage, referencePolicy } from "./reference-page.ts";
import { type SdkSource, sdkRoute } from "./sdk-package.ts";

/** The script of the reference page: `standalone.js` of @scalar/api-reference. */
export interface DocsFiles {
  script: Blob;
  /** Version of the package. It is part of the script's path, so that browsers may keep the script for good. */
  version: string;
  pages: readonly DocPage[];
  /** The TypeScript client. */
  sdk: SdkSource;
}

export interface DocsDeps {
  docs: DocsFiles | null;
  config: { publicUrl: string };
  routes: readonly Route[];
}

/** Tells zod, which the script contains, not to try whether it may make code. The policy would report the try. */
const WITHOUT_EVAL = "globalThis.__zod_globalConfig={jitless:true};";

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
  return [
    json,
    sdkRoute(docs.sdk),
    ...pageRoutes(docs),
    ...guideRoutes(docs.pages),
    ...llmsRoutes({ ...config, pages: docs.pages, document }),
  ];
}

function pageRoutes({ script, version }: DocsFiles): Route[] {
  const path = `/docs/scalar-${version}.js`;
  const page = once(() => referencePage(path));
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
          "content-security-policy": referencePolicy(html),
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
