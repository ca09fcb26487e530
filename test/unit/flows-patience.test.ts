import { expect, test } from "bun:test";
import {
  createPatience,
  FIRST_REST_MS,
  LONGEST_REST_MS,
  restingWhenDone,
} from "../../src/flows/sweep/patience.ts";
import { manualClock } from "../support/manual-clock.ts";

/** How long it is not ready. */
function restOf(clock: ReturnType<typeof manualClock>, ready: () => boolean): number {
  let rested = 0;
  for (; !ready(); rested += FIRST_REST_MS) clock.advance(FIRST_REST_MS);
  return rested;
}

test("rests grow twofold with each failure up to the longest, and begin anew after a success", () => {
  const clock = manualClock();
  const patience = createPatience(clock);
  const rests = Array.from({ length: 10 }, () => {
    patience.failed();
    return restOf(clock, patience.ready);
  });
  expect(rests.slice(0, 4)).toEqual([1, 2, 4, 8].map((times) => times * FIRST_REST_MS));
  expect(rests.slice(-2)).toEqual([LONGEST_REST_MS, LONGEST_REST_MS]);
  patience.worked();
  patience.failed();
  expect(restOf(clock, patience.ready)).toBe(FIRST_REST_MS);
});

test("it is ready at first, and not one millisecond before its rest is over", () => {
  const clock = manualClock();
  const patience = createPatience(clock);
  expect(patience.ready()).toBe(true);
  patience.failed();
  clock.advance(FIRST_REST_MS - 1);
  expect(patience.ready()).toBe(false);
  clock.advance(1);
  expect(patience.ready()).toBe(true);
});

test("a rest does not last until a clock that was put back has come round again", () => {
  const clock = manualClock();
  clock.advance(LONGEST_REST_MS);
  const patience = createPatience(clock);
  patience.failed();
  clock.step(-FIRST_REST_MS);
  expect(patience.ready()).toBe(true);
});

test("a chore rests once it has done all there is, and no sooner; a clock put back lets it rest no longer", async () => {
  const clock = manualClock();
  const found = [3, 1, 0, 0, 0];
  const turns: number[] = [];
  const chore = restingWhenDone(clock, 1000, async (now) => {
    turns.push(now);
    return found.shift() === 0;
  });
  for (let turn = 0; turn < 5; turn++) await chore();
  expect(turns).toHaveLength(3);
  clock.advance(1000);
  await chore();
  await chore();
  expect(turns).toHaveLength(4);
  clock.step(-86_400_000);
  await chore();
  expect(turns).toHaveLength(5);
});
