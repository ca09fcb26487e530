import { expect, test } from "bun:test";
import { adjustableClock } from "../../../../src/core/time/adjustable-clock.ts";
import { manualClock } from "../../../support/manual-clock.ts";

test("a clock set forward fires the timers that are due in their order, and the others at their time", () => {
  const base = manualClock();
  const clock = adjustableClock(base);
  const fired: string[] = [];
  clock.after(300, () => fired.push("300"));
  clock.after(100, () => fired.push("100"));
  clock.after(301, () => fired.push("301"));
  clock.after(200, () => fired.push("canceled"))();
  const [now, elapsed] = [clock.now(), clock.elapsed()];
  clock.advance(300);
  expect(fired).toEqual(["100", "300"]);
  expect([clock.now() - now, clock.elapsed() - elapsed]).toEqual([300, 300]);
  base.advance(1);
  expect(fired).toEqual(["100", "300", "301"]);
  base.advance(1000);
  expect(fired).toHaveLength(3);
});

test("a timer that fires may cancel another one that is due, and start one that waits", () => {
  const base = manualClock();
  const clock = adjustableClock(base);
  const fired: string[] = [];
  const cancel = clock.after(20, () => fired.push("canceled"));
  clock.after(10, () => {
    cancel();
    clock.after(5, () => fired.push("new"));
  });
  clock.advance(1000);
  expect(fired).toEqual([]);
  base.advance(5);
  expect(fired).toEqual(["new"]);
});
