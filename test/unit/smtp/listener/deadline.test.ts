import { expect, test } from "bun:test";
import { HOUR_MS, MINUTE_MS } from "../../../../src/core/time/units.ts";
import {
  Deadline,
  PHASE_TIMEOUT_MS,
  TRANSACTION_TIMEOUT_MS,
} from "../../../../src/smtp/listener/deadline.ts";
import { manualClock } from "../../../support/manual-clock.ts";

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

test("a busy transaction ends after its own limit, whatever the wall clock does", () => {
  const { clock, deadline, passed } = watched();
  const busy = { phase: "data", transaction: 1 } as const;
  deadline.restart(busy);
  clock.advance(MINUTE_MS);
  clock.step(-24 * HOUR_MS);
  for (let ms = MINUTE_MS; ms < TRANSACTION_TIMEOUT_MS; ms += MINUTE_MS) {
    deadline.restart(busy);
    clock.advance(MINUTE_MS);
  }
  expect(passed()).toBe(1);
});
