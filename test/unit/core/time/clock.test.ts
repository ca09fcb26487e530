import { expect, test } from "bun:test";
import { atMostEvery, remainingTime } from "../../../../src/core/time/clock.ts";
import { manualClock } from "../../../support/manual-clock.ts";

test("remainingTime counts down to 0, whatever the wall clock does", () => {
  const clock = manualClock();
  const left = remainingTime(clock, 1000);
  expect(left()).toBe(1000);
  clock.advance(400);
  expect(left()).toBe(600);
  clock.step(-86_400_000);
  expect(left()).toBe(600);
  clock.advance(601);
  expect(left()).toBe(0);
});

test("atMostEvery allows the first log line at once and then one in each pause, whatever the wall clock does", () => {
  const clock = manualClock();
  const isToBeTold = atMostEvery(clock, 1000);
  expect([isToBeTold(), isToBeTold()]).toEqual([true, false]);
  clock.advance(999);
  expect(isToBeTold()).toBe(false);
  clock.advance(1);
  expect([isToBeTold(), isToBeTold()]).toEqual([true, false]);
  clock.step(-86_400_000);
  expect(isToBeTold()).toBe(false);
});
