import type { Clock } from "../../core/time/clock.ts";
import { type Api, callApi } from "./api-client.ts";
import type { Column, Output } from "./output.ts";

export type Item = Readonly<Record<string, unknown>>;

/** Items of one request. The API gives no more. */
const PAGE_ITEMS = 100;

/** Yields the items of a list of the API, page by page. */
export async function* itemsOf(clock: Clock, api: Api, path: string): AsyncGenerator<Item> {
  for (let cursor: string | null = null; ; ) {
    const query = new URLSearchParams({ limit: String(PAGE_ITEMS), ...(cursor === null ? {} : { cursor }) });
    const page = await callApi(clock, api, "GET", `${path}?${query}`);
    yield* page.data as Item[];
    if (typeof page.nextCursor !== "string") return;
    cursor = page.nextCursor;
  }
}

/** Prints the first `limit` items of a list, and says if there are more. */
export async function showItems(
  out: Output,
  items: AsyncIterable<Item>,
  limit: number,
  columns: readonly Column[],
): Promise<void> {
  const shown: Item[] = [];
  let more = false;
  for await (const item of items) {
    more = shown.length === limit;
    if (more) break;
    shown.push(item);
  }
  out.rows(shown, columns);
  if (more) out.warn(`there are more than these ${limit}; use --limit to see more`);
}
