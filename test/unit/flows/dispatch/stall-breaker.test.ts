import { expect, test } from "bun:test";
import { StallBreaker, type StallBreakerDeps } from "../../../../src/flows/dispatch/stall-breaker.ts";
import { manualClock } from "../../../support/manual-clock.ts";

const CHECK_MS = 1_000;

test("stalled deliveries are checked once a second at most, and again while a large message waits for room", () => {
  const clock = manualClock();
  const checks: [at: number, lacking: number][] = [];
  const admission = { lacking: 0 };
  const inFlight = { abortStalled: (now: number, lacking: number) => void checks.push([now, lacking]) };
  const breaker = new StallBreaker({
    clock,
    inFlight: inFlight as unknown as StallBreakerDeps["inFlight"],
    largeMessageAdmission: admission,
    onChecked: () => undefined,
  });
  breaker.checkLarge();
  expect(checks).toEqual([]);
  admission.lacking = 7;
  breaker.checkLarge();
  breaker.check();
  clock.advance(CHECK_MS - 1);
  breaker.check();
  expect(checks).toEqual([[0, 7]]);
  clock.advance(1);
  expect(checks).toEqual([
    [0, 7],
    [CHECK_MS, 7],
  ]);
  admission.lacking = 0;
  clock.advance(3 * CHECK_MS);
  expect(checks).toHaveLength(2);
  breaker.check();
  expect(checks.at(-1)).toEqual([4 * CHECK_MS, 0]);
});
