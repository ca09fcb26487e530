import { type Answer, raw } from "../routing/answer.ts";

/** Caching of a file whose path never gets another content: one year, without asking again. */
const CACHE_CONTROL = "public, max-age=31536000, immutable";

/**
 * Returns the answer of a file that is kept compressed with gzip. Clients that do not read gzip get it decompressed. The path must
 * change with the content, because caches keep the file.
 */
export async function compressedFile(gzipped: Blob, contentType: string, headers: Headers): Promise<Answer> {
  const fields = { "cache-control": CACHE_CONTROL, vary: "accept-encoding" };
  if (takesGzip(headers)) return raw(gzipped, contentType, { ...fields, "content-encoding": "gzip" });
  return raw(Bun.gunzipSync(await gzipped.bytes()), contentType, fields);
}

/** Returns whether the client reads gzip (RFC 9110 §12.5.3). All browsers do. */
function takesGzip(headers: Headers): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(headers.get("accept-encoding") ?? "");
}
