import { createHash } from "node:crypto";
import { raw } from "../routing/answer.ts";
import { openRoute, type Route } from "../routing/route.ts";

/** Returns the client as an npm package. Rejects if it cannot be made. */
export type SdkSource = () => Promise<Uint8Array<ArrayBuffer>>;

/** Returns the route of the client that fits this service: `npm i http://localhost:3000/sdk.tgz`. */
export function sdkRoute(source: SdkSource): Route {
  return openRoute({
    method: "GET",
    path: "/sdk.tgz",
    operationId: "sdkPackage",
    summary: "Get the TypeScript client as an npm package",
    answers: { 200: "application/gzip", 304: null },
    async handle({ request }) {
      const bytes = await source();
      const headers = {
        etag: `"${createHash("sha256").update(bytes).digest("hex")}"`,
        "cache-control": "no-cache",
      };
      if (request.headers.get("if-none-match") === headers.etag)
        return { status: 304, body: undefined, headers };
      return raw(bytes, "application/gzip", headers);
    },
  });
}
