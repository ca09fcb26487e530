import { decodeCursor, encodeCursor } from "../core/crypto/cursors.ts";

/** Items per page if the request has no `limit`. */
export const DEFAULT_PAGE_LIMIT = 20;
export const MAX_PAGE_LIMIT = 100;

/** Body of every page. */
export interface PageBody<Item> {
  data: Item[];
  /** Null on the last page. */
  nextCursor: string | null;
}

/** The requested page. */
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
  key: Uint8Array;
  path: string;
  /** The project or account that owns the list. */
  owner: string;
  /** All query values. A cursor is only valid with the same filters. */
  query: Readonly<Record<string, unknown>>;
}

/** Reads `limit` and `cursor`. Throws 400 `invalid_request` if the cursor was altered or belongs to another query. */
export function openPage(request: PageRequest): Page {
  return new OpenPage(request);
}

/** A page of a request. One that waits is kept for as long, so it is small. */
class OpenPage implements Page {
  readonly #key: Uint8Array;
  readonly #path: string;
  readonly #owner: string;
  readonly #query: PageRequest["query"];
  readonly after: string | null;

  constructor({ key, path, owner, query }: PageRequest) {
    this.#key = key;
    this.#path = path;
    this.#owner = owner;
    this.#query = query;
    this.after = typeof query.cursor === "string" ? decodeCursor(key, this.#scope(), query.cursor) : null;
  }

  /** Returns the scope of a cursor: one path, owner and set of filters. The `limit` may change from page to page. */
  #scope(): string {
    const filters = Object.entries(this.#query)
      .filter(([name]) => name !== "limit" && name !== "cursor")
      .sort(([a], [b]) => (a < b ? -1 : 1));
    return JSON.stringify([this.#path, this.#owner, filters]);
  }

  get #limit(): number {
    const { limit } = this.#query;
    return typeof limit === "number" ? limit : DEFAULT_PAGE_LIMIT;
  }

  get take(): number {
    return this.#limit + 1;
  }

  answer<Row, Item>(
    rows: readonly Row[],
    show: (row: Row) => Item,
    position: (row: Row) => string,
    stoppedAt: string | null = null,
  ): PageBody<Item> {
    const shown = rows.slice(0, this.#limit);
    const last = rows.length > this.#limit ? shown[shown.length - 1] : undefined;
    const next = last === undefined ? stoppedAt : position(last);
    const cursor = next === null ? null : encodeCursor(this.#key, this.#scope(), next);
    return { data: shown.map(show), nextCursor: cursor };
  }
}
