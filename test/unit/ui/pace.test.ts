import { expect, test } from "bun:test";
import { waitAfter } from "../../../src/ui/api/pace.ts";

test.each([
  ["one event after a long pause", 1, 60_000, 150],
  ["a few events", 10, 150, 150],
  ["many events in a moment", 300, 150, 1_500],
  ["many events since a busy read", 300, 1_500, 1_500],
  ["fewer events again", 30, 1_500, 150],
  ["a flood that goes on", 1_500, 1_500, 4_000],
  ["a flood since a slow read", 12_000, 4_000, 4_000],
  ["a flood that has ended", 300, 4_000, 150],
])("after %s a page waits as long as it should", (_, events, elapsedMs, wait) => {
  expect(waitAfter(events, elapsedMs, 150)).toBe(wait);
});

test("a page that reads seldom never reads more often", () => {
  expect(waitAfter(300, 150, 2_000)).toBe(2_000);
});
