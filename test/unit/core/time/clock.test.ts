import { expect, test } from "bun:test";
import { atMostEvery, remainingTime } from "../../../../src/core/time/clock.ts";
import { manualClock } from "../../../support/manual-clock.ts";

test("timeLeft counts down and never exceeds its full time, whatever the wall clock does", () => {
  const clock = manualClock();
  const left = remainingTime(clock, 1000);
  expect(left()).toBe(1000);
  clock.advance(400);
  expect(left()).toBe(600);
  clock.step(-86_400_000);
  expect(left()).toBe(1000);
  clock.step(86_400_000 + 600);
  expect(left()).toBe(0);
  clock.advance(1);
  expect(left()).toBe(0);
});

test("seldom allows the first log line at once and then one in each pause, which setting the clock back does not lengthen", () => {
  const clock = manualClock();
  const isToBeTold = atMostEvery(clock, 1000);
  expect([isToBeTold(), isToBeTold()]).toEqual([true, false]);
  clock.advance(999);
  expect(isToBeTold()).toBe(false);
  clock.advance(1);
  expect([isToBeTold(), isToBeTold()]).toEqual([true, false]);
  clock.step(-86_400_000);
  expect([isToBeTold(), isToBeTold()]).toEqual([true, false]);
});
