import { notFound } from "../../core/errors.ts";
import { type Answer, raw } from "../answer.ts";
import { openRoute, type Route } from "../route.ts";

/** One file of the dashboard. */
export interface UiFile {
  /** Its name in URLs, with a hash of its content: `main-1a2b3c.js`. */
  name: string;
  /** Its content, compressed with gzip. */
  gzipped: Blob;
}

/** Returns the dashboard's files. Rejects if they cannot be made. */
export type UiSource = () => Promise<readonly UiFile[]>;

/** The path of the files. */
export const ASSETS_PATH = "/ui/assets/";

/** The names never get another content, so browsers need not ask again. */
const CACHE_CONTROL = "public, max-age=31536000, immutable";

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
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
        return sent(file, request.headers);
      },
    }),
  ];
}

async function sent({ name, gzipped }: UiFile, headers: Headers): Promise<Answer> {
  const type = CONTENT_TYPES[name.replace(/^.*\./, "")] ?? "application/octet-stream";
  const fields = { "cache-control": CACHE_CONTROL, vary: "accept-encoding" };
  if (takesGzip(headers)) return raw(gzipped, type, { ...fields, "content-encoding": "gzip" });
  return raw(Bun.gunzipSync(await gzipped.bytes()), type, fields);
}

/** Returns whether the client reads gzip (RFC 9110 §12.5.3). All browsers do. */
function takesGzip(headers: Headers): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(headers.get("accept-encoding") ?? "");
}
