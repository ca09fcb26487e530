import type { Flag } from "./command.ts";
import { usage } from "./exit.ts";
import type { Column, Output } from "./output.ts";

/** Items of a list if `--limit` is absent, and the most that it allows. */
const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 10_000;

/** The flag that limits the number of items. */
export const LIMIT_FLAG = {
  type: "string",
  value: "N",
  help: `most items to list, up to ${MAX_LIMIT} (default ${DEFAULT_LIMIT})`,
} as const satisfies Flag;

/** Parses the number of `--limit`. Throws (usage) if it is not one, or is over `MAX_LIMIT`. */
export function limitOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT;
  const limit = /^[1-9]\d{0,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(limit <= MAX_LIMIT)) throw usage(`--limit must be a whole number from 1 to ${MAX_LIMIT}`);
  return limit;
}

/** Prints a page of the API, and says if there are more items. */
export function showPage(out: Output, body: unknown, columns: readonly Column[]): void {
  const page = body as { data: readonly Record<string, unknown>[]; nextCursor: string | null };
  out.rows(page.data, columns);
  if (page.nextCursor !== null)
    out.warn(`there are more than these ${page.data.length}; use --limit to see more`);
}
