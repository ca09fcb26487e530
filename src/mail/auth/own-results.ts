import { findHeaderEnd } from "../reading/raw-headers.ts";

/** A field with its folds. Other programs also take a name with spaces before the colon (RFC 5322 §4.5). */
const RESULTS_FIELD = /^authentication-results[ \t]*:(?:.*(?:\r?\n[ \t].*)*)(?:\r?\n|$)/gim;

/**
 * Removes the Authentication-Results fields that a stranger wrote in our name (RFC 8601 §5), so that they are not
 * taken for our findings. The kept octets of the header move towards the body within `raw`: a large message must
 * not be in memory twice.
 * @param host our authserv-id
 * @returns the message: `raw` itself, or what is left of it
 */
export function withoutOwnResults(raw: Uint8Array, host: string): Uint8Array {
  const { header } = findHeaderEnd(raw);
  const text = Buffer.from(raw.buffer, raw.byteOffset, header).toString("latin1");
  const kept = text.replace(RESULTS_FIELD, (field) => (claims(field, host.toLowerCase()) ? "" : field));
  if (kept.length === text.length) return raw;
  const removed = text.length - kept.length;
  raw.set(Buffer.from(kept, "latin1"), removed);
  return raw.subarray(removed);
}

/** Characters that end a token (RFC 2045 §5.1). An authserv-id without quotes is one. */
const TOKEN_END = /[\s()<>@,;:/[\]?=]/;

/** Returns whether a field has that authserv-id. If its comments do not end, programs disagree, and the name is enough. */
function claims(field: string, host: string): boolean {
  const value = field.slice(field.indexOf(":") + 1).toLowerCase();
  const bare = withoutComments(value);
  if (bare === null) return value.includes(host);
  const id = bare.replace(/["\\]/g, "").trim().split(TOKEN_END, 1)[0] ?? "";
  return id.replace(/\.$/, "") === host;
}

/** Returns a value without its comments (RFC 5322 §3.2.2), or null if one does not end. */
function withoutComments(value: string): string | null {
  let kept = "";
  let depth = 0;
  for (const [piece] of value.matchAll(/\\[\s\S]|[()]|[^()\\]+|\\/g)) {
    if (piece === "(") depth++;
    else if (piece === ")") depth = Math.max(0, depth - 1);
    else if (depth === 0) kept += piece;
  }
  return depth === 0 ? kept : null;
}
