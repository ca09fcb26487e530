import { decodeCursor, encodeCursor } from "../core/cursors.ts";

/** Items of a page when the request names no `limit`. */
export const DEFAULT_PAGE_LIMIT = 20;
export const MAX_PAGE_LIMIT = 100;

/** The page envelope of all paged lists. */
export interface PageBody<Item> {
  data: Item[];
  /** Null: no further results. */
  nextCursor: string | null;
}

/** The page a request asks for. */
export interface Page {
  /** Position (such as an id) after which the page starts; null: at the newest. */
  after: string | null;
  /** Rows to fetch: one more than the page holds, which tells whether it is the last. */
  take: number;
  /**
   * The page's body over the rows fetched, in their order.
   * @param stoppedAt where the next page starts although these are fewer; null: they are all there are
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
  key: Uint8Array;
  path: string;
  /** The project or account whose list it is. */
  owner: string;
  /** All query values; the filters among them bind the cursor. */
  query: Readonly<Record<string, unknown>>;
}

/** A cursor holds for one path, one owner and one set of filters; the `limit` may change during a walk. */
function scopeOf({ path, owner, query }: PageRequest): string {
  const filters = Object.entries(query)
    .filter(([name]) => name !== "limit" && name !== "cursor")
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([path, owner, filters]);
}

/** Reads `limit` and `cursor`. Throws 400 `invalid_request` for a cursor altered or of another query. */
export function openPage(request: PageRequest): Page {
  const { key, query } = request;
  const limit = typeof query.limit === "number" ? query.limit : DEFAULT_PAGE_LIMIT;
  const scope = scopeOf(request);
  return {
    after: typeof query.cursor === "string" ? decodeCursor(key, scope, query.cursor) : null,
    take: limit + 1,
    answer(rows, show, position, stoppedAt = null) {
      const shown = rows.slice(0, limit);
      const last = rows.length > limit ? shown[shown.length - 1] : undefined;
      const next = last === undefined ? stoppedAt : position(last);
      return { data: shown.map(show), nextCursor: next === null ? null : encodeCursor(key, scope, next) };
    },
  };
}
