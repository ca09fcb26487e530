import { expect, test } from "bun:test";
import { MAX_FILTERS, MAX_NAME_CHARS, withFilter } from "../../../src/ui/state/saved-filters.ts";

test("a filter replaces the one of its name, and beyond the maximum the oldest goes", () => {
  const many = Array.from({ length: MAX_FILTERS }, (_, at) => ({ name: `f${at}`, search: "q=x" }));
  const replaced = withFilter(many, { name: "f3", search: "q=y" });
  expect(replaced.length).toBe(MAX_FILTERS);
  expect(replaced.at(-1)).toEqual({ name: "f3", search: "q=y" });
  const more = withFilter(many, { name: "new", search: "q=y" });
  expect([more.length, more[0]?.name, more.at(-1)?.name]).toEqual([MAX_FILTERS, "f1", "new"]);
});

test("a filter without a name or with a query that is too long is not kept, and a long name is cut", () => {
  expect(withFilter([], { name: "  ", search: "q=x" })).toEqual([]);
  expect(withFilter([], { name: "a", search: "x".repeat(2_001) })).toEqual([]);
  expect(withFilter([], { name: "x".repeat(MAX_NAME_CHARS + 1), search: "" })[0]?.name.length).toBe(
    MAX_NAME_CHARS,
  );
});
