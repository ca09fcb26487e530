import { describe, expect, test } from "bun:test";
import {
  type AbTest,
  isUndecided,
  placesOf,
  reasonOf,
  variantAt,
  winnerOf,
} from "../../../../src/core/audience/ab-test.ts";

const TEST: AbTest = {
  subject: "B",
  share: 0.2,
  waitMinutes: 60,
  by: "opens",
  decideAt: null,
  decision: null,
};
const reached = (arrived: number, opened: number, clicked = 0) => ({ arrived, opened, clicked });
const decision = { winner: null, at: 0, figures: { a: reached(0, 0), b: reached(0, 0) } };

test("the places of the test and of the rest are all places, each once", () => {
  const first = placesOf("bro_1", TEST);
  const rest = placesOf("bro_1", { ...TEST, decision });
  expect([first.from, first.below, rest.below]).toEqual([0, rest.from, first.count]);
  expect(first.below / first.count).toBeCloseTo(0.2, 5);
  expect(placesOf("bro_1", { ...TEST, share: 1 }).below).toBe(first.count);
  expect([variantAt(first, first.below / 2 - 1), variantAt(first, first.below / 2)]).toEqual(["a", "b"]);
});

test("a broadcast has the same places after a crash, and another has others", () => {
  expect(placesOf("bro_1", TEST)).toEqual(placesOf("bro_1", TEST));
  expect(placesOf("bro_2", TEST).factor).not.toBe(placesOf("bro_1", TEST).factor);
  for (const id of ["bro_1", "bro_2", "bro_3", "bro_4"]) expect(placesOf(id, TEST).factor % 2).toBe(1);
});

test("a test of all contacts is never decided, and another one once", () => {
  expect(isUndecided({ ...TEST, share: 1 })).toBe(false);
  expect(isUndecided(TEST)).toBe(true);
  expect(isUndecided({ ...TEST, decision })).toBe(false);
});

describe("the better subject", () => {
  test.each([
    ["a", reached(1000, 310), reached(1000, 240), "A was opened by 31.0 % ± 2.9, B by 24.0 % ± 2.7."],
    ["b", reached(1000, 240), reached(1000, 310), "The difference is beyond the margin of error (95 %)."],
    [null, reached(100, 31), reached(100, 24), "The difference is within the margin of error (95 %)."],
    [null, reached(50, 20), reached(50, 20), "A was opened by 40.0 % ± 13.8, B by 40.0 % ± 13.8."],
    [null, reached(0, 0), reached(50, 20), "No message with subject A has arrived."],
    [null, reached(50, 0), reached(50, 0), "No reader has opened a message of the test."],
  ] as const)("%s is better in %o and %o", (winner, a, b, why) => {
    expect(winnerOf("opens", { a, b })).toBe(winner);
    expect(reasonOf("opens", { a, b })).toContain(why);
  });

  test("clicks decide if the test asks for them", () => {
    const figures = { a: reached(1000, 400, 10), b: reached(1000, 200, 60) };
    expect([winnerOf("opens", figures), winnerOf("clicks", figures)]).toEqual(["a", "b"]);
    expect(reasonOf("clicks", figures)).toStartWith("A was clicked by 1.0 %");
  });
});
