import { expect, test } from "bun:test";
import { untilNoRetry, workerConnection } from "../../../src/queue/redis.ts";
import { manualClock } from "../../support/manual-clock.ts";

const NOW = 1_750_000_000_000;

test.each([
  ["before any connection was lost", 0, 0],
  ["at the moment of the loss", NOW, 1000],
  ["a while after it", NOW - 400, 600],
  ["when no wait can be left", NOW - 1000, 0],
])(
  "a queue that closes %s waits for the end of each connection attempt, and no longer",
  (_, lostAt, expected) => {
    expect(untilNoRetry({ ended: true, lostAt }, NOW)).toBe(expected);
  },
);

test("a lost connection is reopened after 50 ms, then after twice as long each time, up to a second", () => {
  const lifeline = { ended: false, lostAt: -Infinity };
  const { retryStrategy } = workerConnection(manualClock(NOW), "redis://127.0.0.1", lifeline);
  // ioredis counts its tries from 1 on.
  expect([1, 2, 3, 4, 5, 6, 1000].map(retryStrategy)).toEqual([50, 100, 200, 400, 800, 1000, 1000]);
  expect(lifeline.lostAt).toBe(0);
});
