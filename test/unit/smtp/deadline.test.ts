import { expect, test } from "bun:test";
import { HOUR_MS, MINUTE_MS } from "../../../src/core/time/units.ts";
import { Deadline, PHASE_TIMEOUT_MS, TRANSACTION_TIMEOUT_MS } from "../../../src/smtp/deadline.ts";
import { manualClock } from "../../support/manual-clock.ts";

/** A deadline on a manual clock, and how often it has passed. */
function watched() {
  const clock = manualClock();
  let passed = 0;
  const deadline = new Deadline(clock, () => passed++);
  return { clock, deadline, passed: () => passed };
}

test("a session without progress has the time of its phase", () => {
  const { clock, deadline, passed } = watched();
  deadline.restart({ phase: "command", transaction: 0 });
  clock.advance(PHASE_TIMEOUT_MS.command - 1);
  expect(passed()).toBe(0);
  clock.advance(1);
  expect(passed()).toBe(1);
});

test("setting the clock back gives a silent session at most its time once more", () => {
  const { clock, deadline, passed } = watched();
  deadline.restart({ phase: "command", transaction: 0 });
  clock.step(-24 * HOUR_MS);
  clock.advance(2 * PHASE_TIMEOUT_MS.command);
  expect(passed()).toBe(1);
});

test("setting the clock back gives a busy transaction at most its time once more", () => {
  const { clock, deadline, passed } = watched();
  const busy = { phase: "data", transaction: 1 } as const;
  deadline.restart(busy);
  clock.advance(MINUTE_MS);
  clock.step(-24 * HOUR_MS);
  for (let ms = 0; ms < TRANSACTION_TIMEOUT_MS; ms += MINUTE_MS) {
    deadline.restart(busy);
    clock.advance(MINUTE_MS);
  }
  expect(passed()).toBe(1);
});

test("setting the clock back gives a transaction that waits for our answer at most its time once more", () => {
  const { clock, deadline, passed } = watched();
  deadline.restart({ phase: "data", transaction: 1 });
  deadline.suspend();
  clock.step(-24 * HOUR_MS);
  clock.advance(PHASE_TIMEOUT_MS.data + TRANSACTION_TIMEOUT_MS);
  expect(passed()).toBe(1);
});
