import { describe, expect, test } from "bun:test";
import { LaneWindow } from "../../../../src/flows/webhooks/lane-window.ts";

const limits = { least: 4, most: 64 };

/** Answers as many jobs as the window has, one round trip after another. Returns the sizes after each. */
function rounds(window: LaneWindow, count: number, ms = 100, isFull = true): number[] {
  return Array.from({ length: count }, () => {
    for (let left = window.size; left > 0; left--) {
      window.start();
      window.answeredWell(ms, isFull);
    }
    return window.size;
  });
}

describe("the window of an endpoint", () => {
  test("doubles in each round trip of good answers, up to its limit", () => {
    expect(rounds(new LaneWindow(limits), 6)).toEqual([8, 16, 32, 64, 64, 64]);
  });

  test("the window of an endpoint does not grow if no further jobs wait", () => {
    expect(rounds(new LaneWindow(limits), 3, 100, false)).toEqual([4, 4, 4]);
  });

  test("the window of an endpoint is halved by a bad answer, once for all jobs that were running, and then grows slowly", () => {
    const window = new LaneWindow(limits);
    rounds(window, 4);
    const jobs = Array.from({ length: 64 }, () => window.start());
    for (const job of jobs) window.answeredBadly(job);
    expect(window.size).toBe(32);
    expect(rounds(window, 3)).toEqual([32, 33, 34]);
  });

  test("the window of an endpoint never becomes smaller than it begins", () => {
    const window = new LaneWindow(limits);
    for (let failures = 0; failures < 10; failures++) window.answeredBadly(window.start());
    expect(window.size).toBe(4);
    rounds(window, 1);
    expect(window.size).toBe(4);
  });

  test("the window of an endpoint does not grow while answers take twice as long as the shortest, until that has been forgotten", () => {
    const window = new LaneWindow(limits);
    rounds(window, 2);
    expect(rounds(window, 1, 300)).toEqual([16]);
    expect(rounds(window, 20, 300).at(-1)).toBe(64);
  });
});
