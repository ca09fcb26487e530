import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { useLayoutEffect, useMemo } from "preact/hooks";
import { get, NotKnown, type Query, withQuery } from "./client.ts";
import { type ApiError, asApiError } from "./error.ts";
import { type Known, merge, type OrderOf } from "./merge.ts";
import { awaitDrawn, type Remembered, remember } from "./resource.ts";
import type { Page } from "./types.ts";

const PAGE_ROWS = 50;
/** Maximum number of rows that a list keeps. Beyond it, the list asks for a narrower filter. */
export const MAX_ROWS = 20_000;
/**
 * Maximum number of empty pages that are skipped in one go. A search may answer several before it finds a row.
 */
const MAX_EMPTY_PAGES = 20;

/** A list of the API that is read page by page, newest first. */
export interface Pages<Row> {
  rows: ReadonlySignal<readonly Row[]>;
  /** Rows that arrived while the list was scrolled, and are not shown yet. */
  waiting: ReadonlySignal<number>;
  error: Signal<ApiError | null>;
  loading: Signal<boolean>;
  /** True once the first page is there. */
  ready: ReadonlySignal<boolean>;
  /** True if there are no further rows. */
  done: ReadonlySignal<boolean>;
  /** True if the list has reached `MAX_ROWS`. */
  full: ReadonlySignal<boolean>;
  /** Reads the first page, unless it came with the app's page. */
  open(): void;
  /** Reads the next page. */
  more(): void;
  /** Reads the first page again, and adds what is new. */
  refresh(): void;
  /** Removes a row, which need not be on the first page. */
  drop(row: Row): void;
  /** Holds new rows back while the list is scrolled, or shows them. */
  hold(held: boolean): void;
}

interface PagesProps<Row> {
  path: string;
  query: Query;
  orderOf: OrderOf<Row>;
  brought: Known<Row> | null;
}

function createPages<Row>({ path, query, orderOf, brought }: PagesProps<Row>): Pages<Row> & Remembered {
  const known = signal<Known<Row> | null>(brought);
  let isNew = brought !== null;
  const error = signal<ApiError | null>(null);
  const loading = signal(false);
  /** Order of the newest row that is shown while new ones are held back. */
  const ceiling = signal<string | null>(null);
  const all = computed(() => known.value?.rows ?? []);
  const rows = computed(() => {
    const limit = ceiling.value;
    return limit === null ? all.value : all.value.filter((row) => orderOf(row) <= limit);
  });
  /** Requested while another answer was pending. */
  let again = false;
  let moreAgain = false;

  const read = (cursor: string | null) =>
    get<Page<Row>>(path, { ...query, limit: PAGE_ROWS, ...(cursor === null ? {} : { cursor }) });
  const run = async (step: () => Promise<void>) => {
    loading.value = true;
    try {
      await step();
      error.value = null;
    } catch (thrown) {
      if (thrown instanceof NotKnown) return;
      error.value = asApiError(thrown);
    }
    loading.value = false;
    if (again) {
      again = false;
      refresh();
    } else if (moreAgain) more();
  };
  const refresh = () => {
    // A pending answer may be older than the event, so the page is read once more after it.
    if (loading.value) again = true;
    else void run(readFirst);
  };
  const readFirst = async () => {
    const page = await read(null);
    known.value = merge(known.value ?? { rows: [], next: null }, page, orderOf);
    if (page.data.length === 0 && page.nextCursor !== null) await append();
  };
  const more = () => {
    moreAgain = loading.value;
    if (!loading.value) void run(append);
  };
  const append = async () => {
    for (let empty = 0; empty < MAX_EMPTY_PAGES; empty++) {
      const { rows: before, next } = known.value ?? { rows: [], next: null };
      if (next === null || before.length >= MAX_ROWS) return;
      const page = await read(next);
      const seen = new Set(before.map(orderOf));
      known.value = {
        rows: [...before, ...page.data.filter((row) => !seen.has(orderOf(row)))],
        next: page.nextCursor,
      };
      if (page.data.length > 0) return;
    }
  };
  return {
    rows,
    error,
    loading,
    open: () => {
      if (!isNew) refresh();
      isNew = false;
    },
    refresh,
    draw: () => run(readFirst),
    snapshot: () => known.peek(),
    waiting: computed(() => all.value.length - rows.value.length),
    ready: computed(() => known.value !== null),
    done: computed(() => known.value !== null && known.value.next === null),
    full: computed(() => all.value.length >= MAX_ROWS),
    more,
    drop: (row) => {
      const { rows: before, next } = known.value ?? { rows: [], next: null };
      known.value = { next, rows: before.filter((other) => orderOf(other) !== orderOf(row)) };
    },
    hold: (held) => {
      const [newest] = all.value;
      if (!held) ceiling.value = null;
      else if (ceiling.value === null && newest !== undefined) ceiling.value = orderOf(newest);
    },
  };
}

/** Returns the list of a path and query, and reads its first page when the component appears or the query changes. */
export function usePages<Row>(path: string, query: Query, orderOf: OrderOf<Row>): Pages<Row> {
  const key = `pages ${withQuery(path, query)}`;
  // The key names path and query.
  const pages = useMemo(
    () =>
      remember(key, (brought) =>
        createPages({ path, query, orderOf, brought: brought as Known<Row> | null }),
      ),
    [key],
  );
  awaitDrawn(pages);
  // Before the page is painted, so that the answer comes sooner.
  useLayoutEffect(() => {
    pages.hold(false);
    pages.open();
  }, [pages]);
  return pages;
}
