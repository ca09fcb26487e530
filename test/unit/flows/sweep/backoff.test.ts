import { expect, test } from "bun:test";
import {
  createBackoff,
  FIRST_BACKOFF_MS,
  MAX_BACKOFF_MS,
  pauseWhenDone,
} from "../../../../src/flows/sweep/backoff.ts";
import { manualClock } from "../../../support/manual-clock.ts";

/** How long it is still at rest. */
function restOf(clock: ReturnType<typeof manualClock>, ready: () => boolean): number {
  let rested = 0;
  for (; !ready(); rested += FIRST_BACKOFF_MS) clock.advance(FIRST_BACKOFF_MS);
  return rested;
}

test("rests double with each failure up to the longest, and start short again after a success", () => {
  const clock = manualClock();
  const patience = createBackoff(clock);
  const rests = Array.from({ length: 10 }, () => {
    patience.recordFailure();
    return restOf(clock, patience.isDue);
  });
  expect(rests.slice(0, 4)).toEqual([1, 2, 4, 8].map((times) => times * FIRST_BACKOFF_MS));
  expect(rests.slice(-2)).toEqual([MAX_BACKOFF_MS, MAX_BACKOFF_MS]);
  patience.recordSuccess();
  patience.recordFailure();
  expect(restOf(clock, patience.isDue)).toBe(FIRST_BACKOFF_MS);
});

test("it is ready at first, and then not one millisecond before its rest is over", () => {
  const clock = manualClock();
  const patience = createBackoff(clock);
  expect(patience.isDue()).toBe(true);
  patience.recordFailure();
  clock.advance(FIRST_BACKOFF_MS - 1);
  expect(patience.isDue()).toBe(false);
  clock.advance(1);
  expect(patience.isDue()).toBe(true);
});

test("a chore rests only after it has done everything", async () => {
  const clock = manualClock();
  const found = [3, 1, 0, 0, 0];
  const turns: number[] = [];
  const chore = pauseWhenDone(clock, 1000, async (now) => {
    turns.push(now);
    return found.shift() === 0;
  });
  for (let turn = 0; turn < 5; turn++) await chore();
  expect(turns).toHaveLength(3);
  clock.advance(1000);
  await chore();
  await chore();
  expect(turns).toHaveLength(4);
});
