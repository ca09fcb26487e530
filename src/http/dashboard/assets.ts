import { notFound } from "../../core/errors.ts";
import { compressedFile } from "../pipeline/compressed.ts";
import { openRoute, type Route } from "../routing/route.ts";

export interface UiFile {
  /** Its name in URLs, with a hash of its content: `main-1a2b3c.js`. */
  name: string;
  /** Its content, compressed with gzip. */
  gzipped: Blob;
  /** True if the page loads it only when it needs it. */
  later?: boolean;
}

/** Returns the dashboard's files. Rejects if they cannot be made. */
export type UiSource = () => Promise<readonly UiFile[]>;

export const ASSETS_PATH = "/ui/assets/";

const SVG = "image/svg+xml";
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: SVG,
};

/** Returns the route of the dashboard's files. */
export function assetRoutes(files: UiSource): Route[] {
  return [
    openRoute({
      method: "GET",
      path: `${ASSETS_PATH}:name`,
      operationId: "dashboardFile",
      summary: "Get a file of the dashboard",
      answers: { 200: "application/octet-stream" },
      errors: ["not_found"],
      async handle({ params, request }) {
        const file = (await files()).find(({ name }) => name === params.name);
        if (file === undefined) throw notFound("file");
        const contentType = CONTENT_TYPES[file.name.replace(/^.*\./, "")] ?? "application/octet-stream";
        return compressedFile(file.gzipped, contentType, request.headers);
      },
    }),
    openRoute({
      method: "GET",
      path: "/favicon.ico",
      operationId: "favicon",
      summary: "Get the icon for pages that name none, such as the reference",
      answers: { 200: SVG },
      errors: ["not_found"],
      async handle({ request }) {
        const file = (await files()).find(({ name }) => name.endsWith(".svg"));
        if (file === undefined) throw notFound("file");
        const answer = await compressedFile(file.gzipped, SVG, request.headers);
        return { ...answer, headers: { ...answer.headers, "cache-control": "max-age=86400" } };
      },
    }),
  ];
}
