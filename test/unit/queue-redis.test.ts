import { expect, test } from "bun:test";
import { untilNoRetry } from "../../src/queue/redis.ts";

const NOW = 1_750_000_000_000;

test.each([
  ["before any connection was lost", 0, 0],
  ["at the moment of the loss", NOW, 1000],
  ["a while behind it", NOW - 400, 600],
  ["when no wait can be left", NOW - 1000, 0],
  ["where the clock was put back by a day since", NOW + 86_400_000, 1000],
])(
  "a queue that closes %s waits for the end of each wait to connect, and no longer",
  (_, lostAt, expected) => {
    expect(untilNoRetry({ ended: true, lostAt }, NOW)).toBe(expected);
  },
);
