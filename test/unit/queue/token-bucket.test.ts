import { describe, expect, test } from "bun:test";
import { memoryBuckets, verdictOf } from "../../../src/queue/token-bucket.ts";

const PLAN = { perSecond: 10, burst: 20 };

describe("a token bucket's answer", () => {
  const rows: readonly [allowed: boolean, tokens: number, remaining: number, reset: number, retry: number][] =
    [
      [true, 19, 19, 1, 0],
      [true, 20, 20, 0, 0],
      [true, 0, 0, 2, 0],
      [false, 0.95, 0, 2, 1],
      [false, 0, 0, 2, 1],
      // Rounding of fractions adds no second and takes no token.
      [true, 9.9999999999, 10, 1, 0],
    ];
  for (const [allowed, tokens, remaining, resetSeconds, retryAfterSeconds] of rows)
    test(`${allowed ? "taken" : "refused"} with ${tokens} of 20 left`, () => {
      expect(verdictOf(PLAN, allowed, tokens)).toEqual({
        allowed,
        limit: 20,
        remaining,
        resetSeconds,
        retryAfterSeconds,
      });
    });
});

describe("buckets in the process", () => {
  test("a client that calls every tenth of a second is never refused at ten a second", () => {
    let now = 0;
    const take = memoryBuckets(() => now);
    for (let at = 0; at < 20; at++) take("a", PLAN);
    for (let at = 0; at < 10_000; at++) {
      now += 100;
      expect(take("a", PLAN).allowed).toBe(true);
      expect(take("a", PLAN).allowed).toBe(false);
    }
  });

  test("one bucket over the limit removes the one unused longest", () => {
    const take = memoryBuckets(() => 0, 2);
    for (const id of ["a", "b", "a", "c"]) take(id, PLAN);
    // The order matters: if a removed bucket is read, it is made again and another one goes.
    expect(take("a", PLAN).remaining).toBe(17);
    expect(take("c", PLAN).remaining).toBe(18);
    expect(take("b", PLAN).remaining).toBe(19);
    expect(take("a", PLAN).remaining).toBe(19);
  });
});
