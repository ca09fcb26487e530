import { type HeaderField, toHeaderField } from "./header-block.ts";
import { fieldsOf } from "./raw-headers.ts";

/** Maximum number of header fields that a record shows. The raw message has all of them. */
export const MAX_SHOWN_HEADERS = 200;

/** Returns header fields by name. If a name occurs twice, the first one counts. */
export function fieldsByName(fields: readonly HeaderField[]): Record<string, string> {
  return byName(fields.slice(0, MAX_SHOWN_HEADERS));
}

/**
 * Adds our trace fields in front of a received message's fields. So the Authentication-Results shown are ours, and not
 * one that the message brought along (RFC 8601 §5).
 */
export function withOwnFields(trace: string | null, headers: Record<string, string>): Record<string, string> {
  if (trace === null) return headers;
  const own = fieldsOf(Buffer.from(trace, "utf8").toString("latin1")).map(toHeaderField);
  return byName([...own, ...Object.entries(headers).map(([name, value]) => ({ name, value }))]);
}

function byName(fields: readonly HeaderField[]): Record<string, string> {
  const headers = new Map<string, string>();
  const seen = new Set<string>();
  for (const { name, value } of fields) {
    if (seen.has(name.toLowerCase())) continue;
    seen.add(name.toLowerCase());
    headers.set(name, value);
  }
  return Object.fromEntries(headers);
}
