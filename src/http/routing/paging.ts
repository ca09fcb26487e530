import type { Key } from "../../core/crypto/key-ring.ts";
import { decodeCursor, encodeCursor } from "../../core/crypto/cursors.ts";

/** Items per page if the request has no `limit`. */
export const DEFAULT_PAGE_LIMIT = 20;
export const MAX_PAGE_LIMIT = 100;

export interface PageBody<Item> {
  data: Item[];
  /** Null on the last page. */
  nextCursor: string | null;
}

export interface Page {
  /** Position (such as an id) after which the page starts. Null: start at the newest. */
  after: string | null;
  /** Rows to fetch: one more than the page holds, to know whether it is the last page. */
  take: number;
  /**
   * Returns the page's body for the fetched rows, in their order.
   * @param stoppedAt where the next page starts if the rows end early; null: there are no more rows
   */
  answer<Row, Item>(
    rows: readonly Row[],
    show: (row: Row) => Item,
    position: (row: Row) => string,
    stoppedAt?: string | null,
  ): PageBody<Item>;
}

export interface PageRequest {
  /** Key that authenticates cursors. */
  key: Key;
  path: string;
  /** The project or account that owns the list. */
  owner: string;
  /** All query values. A cursor is only valid with the same filters. */
  query: Readonly<Record<string, unknown>>;
}

/** Returns the scope of a cursor: one path, owner and set of filters. The `limit` may change from page to page. */
function scopeOf({ path, owner, query }: Omit<PageRequest, "key">): string {
  const filters = Object.entries(query)
    .filter(([name]) => name !== "limit" && name !== "cursor")
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([path, owner, filters]);
}

/**
 * Reads `limit` and `cursor`. The page of a request that waits is kept for as long, so it holds little.
 * @throws AppError 400 `invalid_request` if the cursor was altered or belongs to another query
 */
export function openPage({ key, path, owner, query }: PageRequest): Page {
  const limit = typeof query.limit === "number" ? query.limit : DEFAULT_PAGE_LIMIT;
  const scope = { path, owner, query };
  return {
    after: typeof query.cursor === "string" ? decodeCursor(key, scopeOf(scope), query.cursor) : null,
    take: limit + 1,
    answer(rows, show, position, stoppedAt = null) {
      const shown = rows.slice(0, limit);
      const last = rows.length > limit ? shown[shown.length - 1] : undefined;
      const next = last === undefined ? stoppedAt : position(last);
      const nextCursor = next === null ? null : encodeCursor(key, scopeOf(scope), next);
      return { data: shown.map(show), nextCursor };
    },
  };
}
