import { expect, test } from "bun:test";
import { seldom, timeLeft } from "../../src/core/clock.ts";
import { manualClock } from "../support/manual-clock.ts";

test("what is left of a time runs out, and never grows beyond the whole of it", () => {
  const clock = manualClock();
  const left = timeLeft(clock, 1000);
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

test("what is told seldom is told at once, then once a pause, which no clock put back makes longer", () => {
  const clock = manualClock();
  const isToBeTold = seldom(clock, 1000);
  expect([isToBeTold(), isToBeTold()]).toEqual([true, false]);
  clock.advance(999);
  expect(isToBeTold()).toBe(false);
  clock.advance(1);
  expect([isToBeTold(), isToBeTold()]).toEqual([true, false]);
  clock.step(-86_400_000);
  expect([isToBeTold(), isToBeTold()]).toEqual([true, false]);
});
