import { expect, test } from "bun:test";
import { type TSchema, Type } from "@sinclair/typebox";
import { invalid, readAll } from "../../src/core/errors.ts";
import { check, isLonger } from "../../src/core/validation.ts";

const Names = Type.Union([Type.Literal("hour"), Type.Literal("day")]);
const Short = Type.Union([Type.String({ maxLength: 2, pattern: "^[^-]*$" }), Type.Null()]);
const Named = Type.Union([Type.Object({ name: Type.String() }), Type.Null()]);
const SMILE = "\u{1F600}";

test.each<[string, TSchema, unknown, string[]]>([
  ["none of some texts", Names, "week", ["Expected hour or day"]],
  ["a text of another case", Names, "Day", ["Expected hour or day"]],
  ["no text where there are some", Names, 1, ["Expected hour or day"]],
  ["a text too long, or null", Short, "abc", ["Expected string length less or equal to 2"]],
  ["a text of another pattern, or null", Short, "-", ["Expected string to match '^[^-]*$'"]],
  ["neither a text nor null", Short, 1, ["Expected string or null"]],
  ["an object without its field, or null", Named, {}, ["Required."]],
  ["neither an object nor null", Named, "x", ["Expected object or null"]],
  ["a text in a list of choices", Type.Array(Names), ["day", "x"], ["Expected hour or day"]],
])("what is said of %s", (_name, schema, value, messages) => {
  expect(check(schema, value).map(({ message }) => message)).toEqual(messages);
});

test.each<[string, TSchema, unknown]>([
  ["characters", Type.String({ maxLength: 2 }), SMILE.repeat(2)],
  ["characters or null", Short, SMILE.repeat(2)],
  ["characters of a field", Type.Object({ a: Type.String({ maxLength: 1 }) }), { a: SMILE }],
])("a length counts %s, not JavaScript's units", (_name, schema, value) => {
  expect(check(schema, value)).toEqual([]);
  expect(check(schema, JSON.parse(JSON.stringify(value).replace(SMILE, SMILE.repeat(2))))).toHaveLength(1);
});

test.each<[string, number, boolean]>([
  ["ab", 2, false],
  ["abc", 2, true],
  [SMILE.repeat(2), 2, false],
  [`${SMILE.repeat(2)}a`, 2, true],
  ["\ud83d\ud83d", 1, true],
  ["", 0, false],
])("%p against %d characters: longer is %p", (text, maxChars, longer) => {
  expect(isLonger(text, maxChars)).toBe(longer);
});

test("a refusal names its field in the message, too", () => {
  expect(invalid("domainId", "Required.", "missing_field")).toMatchObject({
    message: "domainId: Required.",
    details: { param: "domainId", issues: [{ message: "Required.", param: "domainId" }] },
  });
});

test("of readings that fail otherwise than by a 422 the failure stands", () => {
  const broken = new Error("broken");
  const refuse = () => {
    throw invalid("a", "Required.");
  };
  expect(() =>
    readAll(refuse, () => {
      throw broken;
    }),
  ).toThrow(broken);
  expect(
    readAll(
      () => 1,
      () => "b",
    ),
  ).toEqual([1, "b"]);
});
