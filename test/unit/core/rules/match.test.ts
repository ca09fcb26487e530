import { expect, test } from "bun:test";
import { checkRules, readyRules } from "../../../../src/core/rules/match.ts";
import {
  MAX_COMPARED_ADDRESSES,
  MAX_COMPARED_CHARS,
  type RuleMail,
  type RuleWhen,
} from "../../../../src/core/rules/rule.ts";

const MAIL: RuleMail = {
  from: "ada@example.com",
  to: [],
  subject: "",
  headers: {},
  hasAttachment: false,
  size: 1,
  authenticated: false,
  trust: null,
  spamScore: null,
  isSpam: false,
  inboxAddress: "box@in.test",
  receivedFields: 1,
  mailFrom: "ada@example.com",
};
const matches = (when: RuleWhen, mail: Partial<RuleMail>): boolean | undefined => {
  const rules = readyRules([{ id: "r", name: "r", inboxId: null, when, then: { stop: true } }]);
  return checkRules(rules, null, { ...MAIL, ...mail })[0]?.matched;
};

const padded = (chars: number) => `${"x".repeat(chars - 1)}é`;
const BOUNDS: [what: string, when: RuleWhen, last: Partial<RuleMail>, past: Partial<RuleMail>][] = [
  [
    "characters of a subject",
    { subject: "É" },
    { subject: padded(MAX_COMPARED_CHARS) },
    { subject: padded(MAX_COMPARED_CHARS + 1) },
  ],
  [
    "characters of a header field",
    { header: { name: "X-Own", value: "é" } },
    { headers: { "x-own": padded(MAX_COMPARED_CHARS) } },
    { headers: { "x-own": padded(MAX_COMPARED_CHARS + 1) } },
  ],
  [
    "recipients",
    { to: "last@" },
    { to: [...Array(MAX_COMPARED_ADDRESSES - 1).fill("a@b.test"), "last@b.test"] },
    { to: [...Array(MAX_COMPARED_ADDRESSES).fill("a@b.test"), "last@b.test"] },
  ],
];
test.each(BOUNDS)(
  "a pattern reads the last of the %s within the limit, and none past it",
  (_, when, last, past) => {
    expect([matches(when, last), matches(when, past)]).toEqual([true, false]);
  },
);

test("a pattern finds composed letters in decomposed text, and takes signs of expressions as they are", () => {
  expect(matches({ subject: "märz" }, { subject: "MA\u0308RZ" })).toBe(true);
  expect(matches({ subject: "a.c" }, { subject: "abc" })).toBe(false);
  expect(matches({ subject: "[x]" }, { subject: "an [X] here" })).toBe(true);
});
