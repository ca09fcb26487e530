import { type Key, makingKey, opened } from "./key-ring.ts";
import { createHmac, timingSafeEqual } from "node:crypto";
import { AppError } from "../errors.ts";
import { fromBase64Url } from "./base64url.ts";

/** Bytes of the authentication tag in a cursor. */
const TAG_BYTES = 12;

/** Longest cursor that is decoded. Our own are far shorter. */
const MAX_CURSOR_CHARS = 512;

function tag(key: Uint8Array, scope: string, position: string): Buffer {
  return createHmac("sha256", key).update(`${scope}\n${position}`).digest().subarray(0, TAG_BYTES);
}

/**
 * Returns an opaque cursor: the position after which the next page starts, authenticated together with the scope.
 * @param scope the path, project and filters that the cursor is valid for, as one string
 */
export function encodeCursor(key: Key, scope: string, position: string): string {
  return Buffer.concat([tag(makingKey(key), scope, position), Buffer.from(position)]).toString("base64url");
}

/**
 * Returns the position in one of our cursors for the same scope. Throws 400 `invalid_request` for any other string.
 */
export function decodeCursor(key: Key, scope: string, cursor: string): string {
  const refused = new AppError(
    "invalid_request",
    "This cursor is not valid for this query. Give the nextCursor of a page with the same filters, or none for the first page.",
    { param: "cursor" },
  );
  if (cursor.length > MAX_CURSOR_CHARS || !/^[A-Za-z0-9_-]+$/.test(cursor)) throw refused;
  const bytes = fromBase64Url(cursor);
  // The decoder ignores bits that do not fill a byte. Without this check, several strings would be the same cursor.
  if (bytes === null || bytes.length <= TAG_BYTES) throw refused;
  const position = bytes.subarray(TAG_BYTES).toString();
  const given = bytes.subarray(0, TAG_BYTES);
  const fits = (one: Uint8Array) => timingSafeEqual(given, tag(one, scope, position)) || null;
  if (opened(key, fits) === null) throw refused;
  return position;
}
