import { describe, expect, test } from "bun:test";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../../src/core/time/units.ts";
import {
  FARTHEST_MS,
  pollPauseMs,
  renewalTime,
  retryPauseMs,
  windowCheckMs,
} from "../../../../src/flows/certificates/renewal-times.ts";
import { MAX_PAUSE_MS } from "../../../../src/net/acme/signed-requests.ts";

const NOW = Date.UTC(2026, 0, 1);
/** A certificate valid for that many days, issued now. */
const of = (days: number) => ({ notBefore: NOW, notAfter: NOW + days * DAY_MS, issuedAt: NOW });
const window = (from: number, to: number) => ({
  start: NOW + from * DAY_MS,
  end: NOW + to * DAY_MS,
  retryAfterMs: null,
});

describe("a certificate is renewed", () => {
  test.each([
    ["a third before the end of 90 days", of(90), null, 60],
    ["a third before the end of 6 days", of(6), null, 4],
    ["at its place in the CA's window", of(90), window(10, 20), 15],
    [
      "at once if the CA says so and it is an hour old",
      { ...of(90), issuedAt: NOW - 2 * HOUR_MS },
      window(-2, -1),
      -1 / 24,
    ],
    ["an hour after it was issued, even if the CA says earlier", of(90), window(-2, -1), 1 / 24],
    ["with a tenth left, even if the CA says later", of(90), window(89, 91), 81],
    [
      "not in the first tenth by a clock that runs ahead",
      { ...of(90), issuedAt: NOW + 80 * DAY_MS },
      null,
      89,
    ],
  ])("%s", (_when, times, wanted, days) => {
    const now = Math.max(NOW, times.issuedAt);
    expect((renewalTime(times, wanted, 0.5, now) - NOW) / DAY_MS).toBeCloseTo(days, 6);
  });

  test("a certificate issued by a clock that ran ahead and was set back is renewed in time", () => {
    const times = { ...of(90), issuedAt: NOW + 80 * DAY_MS };
    expect(renewalTime(times, null, 0.5, NOW + DAY_MS)).toBe(NOW + 60 * DAY_MS);
  });
});

test("the CA is asked for its window as often as it says, between a minute and a day", () => {
  const asked = (retryAfterMs: number | null) => windowCheckMs({ start: 0, end: 0, retryAfterMs });
  expect([asked(0), asked(2 * HOUR_MS), asked(9 * DAY_MS), asked(null)]).toEqual([
    MINUTE_MS,
    2 * HOUR_MS,
    DAY_MS,
    6 * HOUR_MS,
  ]);
});

describe("after a failure", () => {
  const refused = (failures: number, retryAfterMs: number | null = null, random = 0) =>
    retryPauseMs({ refused: true, retryAfterMs }, failures, random);
  const trouble = (failures: number) => retryPauseMs({ refused: false, retryAfterMs: null }, failures, 0);

  test("after a refusal the pause is an hour, then doubles up to a day", () => {
    expect([1, 2, 3, 6, 1000].map((failures) => refused(failures) / HOUR_MS)).toEqual([1, 2, 4, 24, 24]);
  });

  test("after trouble the pause is 15 seconds, then doubles up to six hours", () => {
    expect([1, 2, 3, 12, 1000].map((failures) => trouble(failures) / MINUTE_MS)).toEqual([
      0.25, 0.5, 1, 360, 360,
    ]);
  });

  test("the CA may want a longer pause, never a shorter one", () => {
    expect([refused(1, 3 * DAY_MS), refused(1, MINUTE_MS)]).toEqual([3 * DAY_MS, HOUR_MS]);
  });

  test("the pause is up to a tenth longer at random, and never reaches what a clock set back looks like", () => {
    expect(refused(1, null, 0.999)).toBeGreaterThan(1.09 * HOUR_MS);
    expect(refused(1, MAX_PAUSE_MS, 0.999)).toBeLessThan(FARTHEST_MS);
  });
});

test("an order is looked at every two seconds, later less often, and as the CA says within these limits", () => {
  expect([0, 20_000, 100_000, HOUR_MS].map((age) => pollPauseMs(age, null))).toEqual([
    2000, 2000, 10_000, 60_000,
  ]);
  // The database takes whole milliseconds only.
  expect(pollPauseMs(33_333, null)).toBe(3333);
  expect([0, 5000, HOUR_MS].map((pause) => pollPauseMs(0, pause))).toEqual([2000, 5000, 60_000]);
});
