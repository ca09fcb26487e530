/** Query parameters of the list, which the page's URL has too. */
export const FILTER_NAMES = [
  "status",
  "direction",
  "q",
  "text",
  "from",
  "to",
  "tag",
  "after",
  "before",
] as const;
