import { expect, test } from "bun:test";
import { floodMeter, waitAfter } from "../../../src/ui/api/pace.ts";

test.each([
  ["one event after a long pause", 1, 60_000, 150],
  ["a few events", 10, 150, 150],
  ["many events in a moment", 300, 150, 1_500],
  ["many events since a busy read", 300, 1_500, 1_500],
  ["fewer events again", 30, 1_500, 150],
])("after %s a page waits as long as it should", (_, events, elapsedMs, wait) => {
  expect(waitAfter(events, elapsedMs, 150)).toBe(wait);
});

test("a page that reads seldom never reads more often", () => {
  expect(waitAfter(300, 150, 2_000)).toBe(2_000);
});

test.each([
  ["a burst that fills the bucket", 50, 0, false],
  ["one event more", 51, 0, true],
  ["as many a second as a page can follow", 2_000, 10, false],
  ["twice as many", 2_000, 5, true],
  ["events after long pauses", 200, 60_000, false],
])("tells whether there are too many events to follow: %s", (_, events, apartMs, tooMany) => {
  const isFlood = floodMeter(50);
  const told = Array.from({ length: events }, (_, n) => isFlood(n * apartMs));
  expect(told.includes(true)).toBe(tooMany);
});
