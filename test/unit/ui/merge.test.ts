import { expect, test } from "bun:test";
import { merge } from "../../../src/ui/api/merge.ts";

const order = (row: { id: number }) => String(row.id).padStart(4, "0");
const rows = (...ids: number[]) => ids.map((id) => ({ id }));
const ids = (known: { rows: readonly { id: number }[] }) => known.rows.map(({ id }) => id);

test("new rows come before those that are known", () => {
  const known = { rows: rows(5, 4, 3, 2, 1), next: "after 1" };
  const merged = merge(known, { data: rows(7, 6, 5), nextCursor: "after 5" }, order);
  expect([ids(merged), merged.next]).toEqual([[7, 6, 5, 4, 3, 2, 1], "after 1"]);
});

test("a row that the first page lacks has left the list", () => {
  const known = { rows: rows(5, 4, 3, 2), next: null };
  expect(ids(merge(known, { data: rows(5, 3), nextCursor: "after 3" }, order))).toEqual([5, 3, 2]);
});

test("rows with a gap to the first page are forgotten, so that none is left out", () => {
  const known = { rows: rows(3, 2, 1), next: null };
  const merged = merge(known, { data: rows(9, 8), nextCursor: "after 8" }, order);
  expect([ids(merged), merged.next]).toEqual([[9, 8], "after 8"]);
});

test("a first page without a next one is the whole list", () => {
  const known = { rows: rows(5, 4), next: "after 4" };
  const merged = merge(known, { data: rows(6), nextCursor: null }, order);
  expect([ids(merged), merged.next]).toEqual([[6], null]);
});
