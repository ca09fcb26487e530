import { describe, expect, test } from "bun:test";
import { compared, neededFor, rateOf } from "../../../../src/core/audience/rates.ts";

describe("the margin of error of a rate", () => {
  // Newcombe (1998), Statistics in Medicine 17:857, table I, method 3.
  test.each([
    [81, 263, 0.2553, 0.3662],
    [15, 148, 0.0624, 0.1605],
    [0, 20, 0, 0.1611],
    [1, 29, 0.0061, 0.1718],
  ])("%d of %d is Wilson's interval", (count, of, low, high) => {
    const found = rateOf(count, of);
    expect(found.low).toBeCloseTo(low, 4);
    expect(found.high).toBeCloseTo(high, 4);
    expect(found.margin).toBeCloseTo(Math.max(count / of - low, high - count / of), 4);
  });

  test("nothing to divide by has no rate", () => {
    expect(rateOf(0, 0)).toEqual({ count: 0, rate: null, low: null, high: null, margin: null });
  });

  test("more opens than arrivals, which a relay may report late, are a rate of 1", () => {
    expect(rateOf(3, 2)).toMatchObject({ count: 3, rate: 1, high: 1 });
  });
});

describe("the difference of two rates", () => {
  // Newcombe (1998), Statistics in Medicine 17:873, table II, method 10.
  test.each([
    [56, 70, 48, 80, 0.0524, 0.3339, true],
    [9, 10, 3, 10, 0.1705, 0.809, true],
    [6, 7, 2, 7, 0.0582, 0.8062, true],
    [5, 56, 0, 29, -0.0381, 0.1926, false],
    [0, 10, 0, 20, -0.1611, 0.2775, false],
    [10, 10, 0, 20, 0.6791, 1, true],
  ])("%d of %d and %d of %d is Newcombe's interval", (a, ofA, b, ofB, low, high, isClear) => {
    const found = compared(rateOf(a, ofA), rateOf(b, ofB));
    expect(found.low).toBeCloseTo(low, 4);
    expect(found.high).toBeCloseTo(high, 4);
    expect(found.isClear).toBe(isClear);
    const other = compared(rateOf(b, ofB), rateOf(a, ofA));
    expect(other.low).toBeCloseTo(-high, 4);
    expect(other.isClear).toBe(isClear);
  });

  test("a rate that is missing is not clearly different from any", () => {
    expect(compared(rateOf(0, 0), rateOf(9, 10))).toMatchObject({ difference: null, isClear: false });
  });
});

test("recipients of each group are as many as those of R's power.prop.test", () => {
  // Its example: p1 = .50, p2 = .75, power = .90 needs 76.7.
  expect(neededFor(0.5, 0.75, 1.2815515655446004)).toBe(77);
  expect(neededFor(0.75, 0.5, 1.2815515655446004)).toBe(77);
  // With that number the first becomes clear in 4 of 5 tests.
  expect(neededFor(0.3, 0.35)).toBe(1377);
});
