import { expect, test } from "bun:test";
import { type TSchema, Type } from "@sinclair/typebox";
import { invalid, readAll } from "../../../src/core/errors.ts";
import { check, isLonger } from "../../../src/core/validation.ts";

const Names = Type.Union([Type.Literal("hour"), Type.Literal("day")]);
const Short = Type.Union([
  Type.String({ maxLength: 2, pattern: "^[^-]*$", meaning: "without hyphen", examples: ["ab"] }),
  Type.Null(),
]);
const Named = Type.Union([Type.Object({ name: Type.String({ examples: ["Ana"] }) }), Type.Null()]);
const SHORT = 'must be a string of at most 2 characters without hyphen or null, such as "ab".';
const SMILE = "\u{1F600}";

test.each<[string, TSchema, unknown, string[]]>([
  ["not one of some texts", Names, "week", ['must be "hour" or "day".']],
  ["a text of another case", Names, "Day", ['must be "hour" or "day".']],
  ["no text although some are required", Names, 1, ['must be "hour" or "day".']],
  ["a text too long, or null", Short, "abc", [SHORT]],
  ["a text of another pattern, or null", Short, "-", [SHORT]],
  ["neither a text nor null", Short, 1, [SHORT]],
  ["an object without its field, or null", Named, {}, ['is required: a string, such as "Ana".']],
  ["a field of another type, in an object or null", Named, { name: 5 }, ['must be a string, such as "Ana".']],
  ["neither an object nor null", Named, "x", ['must be an object or null, such as {"name":"Ana"}.']],
  ["a text in a list of choices", Type.Array(Names), ["day", "x"], ['must be "hour" or "day".']],
  [
    "a number out of range",
    Type.Integer({ minimum: 1, maximum: 5 }),
    6,
    ["must be a whole number from 1 to 5, such as 1."],
  ],
  [
    "a number too small",
    Type.Number({ minimum: 0.5 }),
    0,
    ["must be a number of at least 0.5, such as 0.5."],
  ],
  [
    "no item",
    Type.Array(Names, { minItems: 1 }),
    [],
    ['must be a list of at least 1 item, such as ["hour"].'],
  ],
  [
    "too many items",
    Type.Array(Names, { maxItems: 1 }),
    ["day", "day"],
    ['must be a list of at most 1 item, such as ["hour"].'],
  ],
  [
    "no characters",
    Type.String({ minLength: 1, maxLength: 9 }),
    "",
    ["must be a string of 1 to 9 characters."],
  ],
  [
    "words of the schema",
    Type.String({ minLength: 3, expected: "a name", examples: ["Ana", "Ben", "Eve"] }),
    "",
    ['must be a name, such as "Ana" or "Ben".'],
  ],
  [
    "a long example",
    Type.String({ minLength: 130, examples: ["x".repeat(130)] }),
    "",
    ["must be a string of at least 130 characters."],
  ],
])("the error for %s", (_name, schema, value, messages) => {
  expect(check(schema, value).map(({ message }) => message)).toEqual(messages);
});

test.each<[string, TSchema, unknown]>([
  ["characters", Type.String({ maxLength: 2 }), SMILE.repeat(2)],
  ["characters or null", Short, SMILE.repeat(2)],
  ["characters of a field", Type.Object({ a: Type.String({ maxLength: 1 }) }), { a: SMILE }],
])("a length counts %s, not UTF-16 units", (_name, schema, value) => {
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
  const message = '"domainId" is required.';
  expect(invalid("domainId", "is required.", "missing_field")).toMatchObject({
    message,
    details: { param: "domainId", issues: [{ message, param: "domainId" }] },
  });
  expect(invalid("", "must be an object.").message).toBe("The body must be an object.");
  expect(invalid("domainId", "This domain is taken.").message).toBe("domainId: This domain is taken.");
});

test("if a reader fails with an error other than 422, that error is kept", () => {
  const broken = new Error("broken");
  const refuse = () => {
    throw invalid("a", "is required.");
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

test("readers that fail with 422 are answered together, and one alone is answered too", () => {
  const refuse = (param: string) => () => {
    throw invalid(param, "is required.");
  };
  const paramsOf = (...params: string[]) => {
    try {
      readAll(...params.map(refuse), () => 1);
    } catch (error) {
      return (error as ReturnType<typeof invalid>).details.issues?.map(({ param }) => param);
    }
    return null;
  };
  expect(paramsOf()).toBeNull();
  expect(paramsOf("a")).toEqual(["a"]);
  expect(paramsOf("a", "b")).toEqual(["a", "b"]);
});
