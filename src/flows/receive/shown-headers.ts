import { type HeaderField, toHeaderField } from "../../mail/reading/header-block.ts";
import { fieldsOf } from "../../mail/reading/raw-headers.ts";

/** Header fields shown in a record at most; the raw message has them all. */
export const MAX_SHOWN_HEADERS = 200;

/** The fields of a mail by name; of a name that comes twice, the topmost. */
export function fieldsByName(fields: readonly HeaderField[]): Record<string, string> {
  return byName(fields.slice(0, MAX_SHOWN_HEADERS));
}

/**
 * The fields of a received mail's record: those that we put in front of it come first. So the Authentication-Results
 * shown are ours, and never one that the mail brought along (RFC 8601 §5).
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
