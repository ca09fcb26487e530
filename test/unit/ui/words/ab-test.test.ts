import { describe, expect, test } from "bun:test";
import { planText, rateText, verdictText } from "../../../../src/ui/pages/broadcasts/ab-words.ts";

describe("what a test of two subjects will do", () => {
  for (const [share, waitMinutes, by, text] of [
    [
      0.2,
      240,
      "opens",
      "10 % of the contacts get each subject. 4 h later, the others get the one that more people opened",
    ],
    [
      0.1,
      90,
      "clicks",
      "5.0 % of the contacts get each subject. 1 h 30 min later, the others get the one that more people clicked",
    ],
    [1, 240, "opens", "Half of the contacts get each subject."],
  ] as const)
    test(`with a share of ${share}`, () => expect(planText({ share, waitMinutes, by })).toStartWith(text));
});

test.each([
  [0.31, 0.021, "31 % ± 2.1"],
  [0.4, 0.138, "40 % ± 14"],
  [0.032, 0.009, "3.2 % ± 0.9"],
  [null, null, "–"],
])("the rate %p with the margin %p is shown as %s", (rate, margin, text) =>
  expect(rateText({ rate, margin })).toBe(text),
);

describe("the verdict on two subjects", () => {
  const abTest = { subject: "B", share: 0.2, waitMinutes: 240, by: "opens", decideAt: null } as const;
  const decided = (winner: "a" | "b" | "undecided") => ({ winner, why: "", at: "2026-05-01T09:00:00.000Z" });
  for (const [decision, better, text] of [
    [null, null, "No clear difference so far"],
    [null, "b", "B is better so far"],
    [decided("a"), "b", "A has won, so the others get it"],
    [decided("undecided"), "b", "No clear difference, so the others get A"],
  ] as const)
    test(text, () => expect(verdictText({ ...abTest, decision }, { better })).toBe(text));
});
