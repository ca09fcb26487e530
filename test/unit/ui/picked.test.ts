import { expect, test } from "bun:test";
import { MAX_PICKED, withRows } from "../../../src/ui/state/picked.ts";

test("no more rows are selected than one action may take, and a known row keeps its token", () => {
  const rows = Array.from({ length: MAX_PICKED + 1 }, (_, at) => String(at));
  const first = withRows(new Map(), ["0"], (row) => row);
  const all = withRows(first, rows, (row) => row);
  expect(all.size).toBe(MAX_PICKED);
  expect(all.get("0")).toBe(first.get("0") as never);
});
