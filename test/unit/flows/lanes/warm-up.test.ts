import { expect, test } from "bun:test";
import { capOf, stepAfter, type WarmUpDay } from "../../../../src/flows/lanes/warm-up.ts";

const day = (changes: Partial<WarmUpDay>): WarmUpDay => ({
  accepted: 0,
  deferred: 0,
  refused: 0,
  blocked: false,
  ...changes,
});

test("the caps of a new address grow to 100,000 messages a day, then there is none", () => {
  const caps = Array.from({ length: 13 }, (_, step) => capOf(step));
  expect(caps).toEqual([50, 100, 250, 500, 1000, 2000, 5000, 10_000, 20_000, 40_000, 80_000, 100_000, null]);
});

test.each([
  ["one between two steps is the last cap", 300, [50, 100, 250, 300, null]],
  ["one that is a step is the last cap", 250, [50, 100, 250, null, null]],
  ["one below the first step is the only cap", 20, [20, null, null, null, null]],
])("of the targets of a warm-up, %s", (_, target, caps) => {
  expect([0, 1, 2, 3, 4].map((step) => capOf(step, target))).toEqual(caps);
});

test("a target above the last step is reached at once after it", () => {
  expect([11, 12, 13].map((step) => capOf(step, 300_000))).toEqual([100_000, 300_000, null]);
});

test.each([
  ["goes on after a good day", 0, day({ accepted: 50 }), 1],
  ["goes on if 5 % were deferred", 3, day({ accepted: 95, deferred: 5 }), 4],
  ["repeats if more were deferred", 3, day({ accepted: 94, deferred: 6 }), 3],
  ["goes on if addresses were unknown", 3, day({ accepted: 50, refused: 50 }), 4],
  ["repeats if our address was refused once", 3, day({ accepted: 499, refused: 1, blocked: true }), 3],
  ["does not count a day without mail", 5, day({}), 5],
  ["is over after the last step", 11, day({ accepted: 100_000 }), 12],
  ["stays over", 13, day({ accepted: 1 }), 13],
])("a warm-up %s", (_, step, seen, expected) => {
  expect(stepAfter(step, seen)).toBe(expected);
});
