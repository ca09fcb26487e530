import type { Flag } from "./command.ts";
import { usage } from "./exit.ts";
import type { Column, Output } from "./output.ts";

/** Items of a list where `--limit` names no other number, and at most. */
const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 10_000;

/** The flag that says how many. */
export const LIMIT_FLAG = {
  type: "string",
  value: "N",
  help: `at most so many, ${DEFAULT_LIMIT} unless told, up to ${MAX_LIMIT}`,
} as const satisfies Flag;

/** The number that `--limit` gives. Throws (usage) where it is none, or over `MAX_LIMIT`. */
export function limitOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT;
  const limit = /^[1-9]\d{0,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(limit <= MAX_LIMIT)) throw usage(`--limit must be a whole number from 1 to ${MAX_LIMIT}`);
  return limit;
}

/** Prints a page of the API, and says so where there would be more. */
export function showPage(out: Output, body: unknown, columns: readonly Column[]): void {
  const page = body as { data: readonly Record<string, unknown>[]; nextCursor: string | null };
  out.rows(page.data, columns);
  if (page.nextCursor !== null) out.warn(`there are more than these ${page.data.length}: ask with --limit`);
}
