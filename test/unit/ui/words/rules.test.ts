import { expect, test } from "bun:test";
import type { Rule, RuleTrial } from "../../../../src/ui/api/types.ts";
import { bodyOf, draftOf } from "../../../../src/ui/pages/rules/draft.ts";
import { movedPositions } from "../../../../src/ui/pages/rules/order.ts";
import { conditionText, outcomeText, ruleText } from "../../../../src/ui/words/rules.ts";

type When = Rule["when"];
type Then = Rule["then"];

const NAMES = { member: (id: string) => `${id}@team.test`, template: (id: string) => `T ${id}` };

/** Each condition of the API with its words. A new one breaks the types until it is here. */
const CONDITIONS: { [Name in keyof When]-?: [value: NonNullable<When[Name]>, words: string] } = {
  from: ["*@a.test", "the author ends with “@a.test”"],
  to: ["sales@", "a recipient contains “sales@”"],
  subject: [" invoice", "the subject contains “ invoice”"],
  header: [{ name: "List-Id", value: "news" }, "the header field List-Id contains “news”"],
  hasAttachment: [false, "there is no file"],
  largerThan: [2048, "it is larger than 2.0 KiB"],
  auth: ["fail", "DMARC does not prove the author"],
  trust: ["known", "the sender has the trust “known”"],
  spamScoreAbove: [-1.5, "the spam score is above -1.5"],
};

/** Each action of the API with its words. */
const ACTIONS: { [Name in keyof Then]-?: [value: NonNullable<Then[Name]>, words: string] } = {
  labels: [["billing", "a, b"], "add the labels “billing”, “a, b”"],
  assigneeId: ["ana", "assign it to ana@team.test unless somebody has it"],
  folder: ["inbox", "keep it out of spam"],
  replyTemplateId: ["away", "answer with the template “T away”"],
  forwardTo: ["ana@a.test", "forward it to ana@a.test"],
  archive: [true, "archive it"],
  markRead: [true, "mark it as read"],
  reject: ["No, thanks", "refuse it with 550 5.7.1 “No, thanks”"],
  drop: [true, "accept it and keep only its header"],
  stop: [true, "skip all later rules"],
};

const rule = (when: When, then: Then): Rule => ({
  id: "rul_1",
  inboxId: null,
  position: 0,
  name: "A rule",
  enabled: true,
  disabledReason: null,
  createdAt: "",
  updatedAt: "",
  when,
  then,
});

test.each(Object.entries(CONDITIONS))(
  "the condition %s has words, and the form gives back what it shows",
  (name, [value, words]) => {
    const when = { [name]: value };
    expect(ruleText({ when, then: { archive: true } }, NAMES)).toBe(`If ${words}, then archive it.`);
    expect(conditionText(when, name)).toBe(words);
    expect(bodyOf(draftOf(rule(when, { archive: true })))).toMatchObject({ when, then: { archive: true } });
  },
);

test.each(Object.entries(ACTIONS))(
  "the action %s has words, and the form gives back what it shows",
  (name, [value, words]) => {
    const then = { [name]: value };
    expect(ruleText({ when: {}, then }, NAMES)).toBe(`For every message: ${words}.`);
    expect(bodyOf(draftOf(rule({}, then)))).toEqual({ name: "A rule", inboxId: null, when: {}, then });
  },
);

test("a sentence joins conditions and actions, and leaves out what is turned off", () => {
  const when = { subject: "invoice", hasAttachment: true };
  const then = { archive: true, labels: [], drop: false, markRead: true, stop: true };
  expect(ruleText({ when, then }, NAMES)).toBe(
    "If the subject contains “invoice” and there is a file, then archive it, mark it as read and skip all later rules.",
  );
  expect(conditionText({ header: { name: "List-Id" } }, "header")).toBe("there is a header field List-Id");
  expect(conditionText({}, "subject")).toBe("subject");
});

test("the outcome of a trial names the refusal alone, because nothing else happens then", () => {
  const nothing: RuleTrial["outcome"] = {
    labels: [],
    assigneeId: null,
    folder: null,
    archive: false,
    markRead: false,
    reply: null,
    forwards: [],
    reject: null,
    drop: false,
  };
  expect(outcomeText(nothing, NAMES)).toBe("The rules would do nothing.");
  expect(outcomeText({ ...nothing, labels: ["a"], archive: true }, NAMES)).toBe(
    "The rules would add the label “a” and archive it.",
  );
  const reply = { ruleId: "rul_1", templateId: "away", reason: null };
  const forward = { ruleId: "rul_2", to: "ana@a.test", reason: null };
  expect(outcomeText({ ...nothing, reply, forwards: [forward] }, NAMES)).toBe(
    "The rules would forward it to ana@a.test and answer with the template “T away”.",
  );
  const unsent = {
    reply: { ...reply, reason: "bulk" },
    forwards: [forward, { ...forward, to: "ben@a.test", reason: "new_code" }],
  };
  expect(outcomeText({ ...nothing, ...unsent }, NAMES)).toBe(
    "The rules would forward it to ana@a.test. They would not forward it to ben@a.test, because new_code. They would not answer it, because it was sent to many.",
  );
  expect(outcomeText({ ...nothing, labels: ["a"], reject: "No" }, NAMES)).toBe(
    "The rules would refuse it with 550 5.7.1 “No”.",
  );
  expect(outcomeText({ ...nothing, drop: true }, NAMES)).toBe(
    "The rules would accept it and keep only its header.",
  );
});

const MOVES: [
  what: string,
  positions: number[],
  from: number,
  to: number,
  changes: Record<string, number>,
][] = [
  ["to the place before changes two", [0, 1, 2], 2, 1, { c: 1, b: 2 }],
  ["across gaps keeps the gaps", [0, 10, 20], 0, 1, { b: 0, a: 10 }],
  ["among equal positions makes them differ", [5, 5, 5], 2, 1, { c: 6, b: 7 }],
  ["to its own place changes nothing", [0, 1], 1, 1, {}],
];
test.each(MOVES)("moving a rule %s", (_, positions, from, to, changes) => {
  const rules = positions.map((position, at) => ({ id: "abc".charAt(at), position }));
  const moved = movedPositions(rules, from, to);
  expect(Object.fromEntries(moved.map(({ id, position }) => [id, position]))).toEqual(changes);
});
