import { signal } from "@preact/signals";

/** A filter of the messages that a person has named. */
export interface SavedFilter {
  name: string;
  /** The query of its page. */
  search: string;
}

/** Maximum number of filters kept, and of characters of a name and a query. */
export const MAX_FILTERS = 20;
export const MAX_NAME_CHARS = 40;
const MAX_SEARCH_CHARS = 2_000;

/** Name in the browser's storage. Other choices are cookies, but filters are too long to go with each request. */
const KEY = "postrider.filters";

/** The saved filters of this browser. Empty until `readFilters`, because the server that draws a page has none. */
export const savedFilters = signal<readonly SavedFilter[]>([]);

/** Reads the filters that this browser keeps. */
export function readFilters(): void {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    savedFilters.value = Array.isArray(kept) ? kept.filter(isFilter).slice(0, MAX_FILTERS) : [];
  } catch {
    savedFilters.value = [];
  }
}

function isFilter(value: unknown): value is SavedFilter {
  const { name, search } = (value ?? {}) as Partial<SavedFilter>;
  return typeof name === "string" && typeof search === "string";
}

/** Returns filters with one more. One of the same name is replaced, and beyond the maximum the oldest goes. */
export function withFilter(filters: readonly SavedFilter[], added: SavedFilter): SavedFilter[] {
  const name = added.name.trim().slice(0, MAX_NAME_CHARS);
  if (name === "" || added.search.length > MAX_SEARCH_CHARS) return [...filters];
  const others = filters.filter((one) => one.name !== name);
  return [...others, { name, search: added.search }].slice(-MAX_FILTERS);
}

/** Keeps these filters. If the browser refuses, they hold until the page is closed. */
export function keepFilters(filters: readonly SavedFilter[]): void {
  savedFilters.value = filters;
  try {
    localStorage.setItem(KEY, JSON.stringify(filters));
  } catch {
    // A browser may refuse storage, or be full.
  }
}
