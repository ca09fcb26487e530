import { expect, test } from "bun:test";
import { RecentHints } from "../../../../src/flows/sweep/recent-hints.ts";

const NOW = 1_750_000_000_000;

test("a hint is remembered for four to eight seconds", () => {
  const hints = new RecentHints();
  expect(hints.note("dlv_a", 1, NOW)).toBe(true);
  for (const ms of [0, 3_999, 4_000, 7_999]) expect(hints.note("dlv_a", 1, NOW + ms)).toBe(false);
  expect(hints.note("dlv_a", 1, NOW + 8_000)).toBe(true);
});

test("hints are forgotten after a pause", () => {
  const hints = new RecentHints();
  hints.note("dlv_a", 1, NOW);
  expect(hints.note("dlv_a", 1, NOW + 60_000)).toBe(true);
});

test("a row with another due time, and another row, are not covered by a hint", () => {
  const hints = new RecentHints();
  hints.note("dlv_a", 1, NOW);
  expect([hints.note("dlv_a", 2, NOW), hints.note("dlv_b", 1, NOW)]).toEqual([true, true]);
});
