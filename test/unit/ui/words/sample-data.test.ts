import { expect, test } from "bun:test";
import {
  fieldOf,
  parseData,
  sampleData,
  withField,
  withMissing,
} from "../../../../src/ui/words/sample-data.ts";

test("each variable of a template gets its own name as a sample", () => {
  expect(sampleData(["name", "user.first", "user.last"])).toEqual({
    name: "name",
    user: { first: "first", last: "last" },
  });
});

test("missing variables are added to the data, and what is there stays", () => {
  const data = `{"user": {"first": "Ana"}, "list": [1]}`;
  expect(JSON.parse(withMissing(data, ["user.first", "user.last", "list.x"]))).toEqual({
    user: { first: "Ana", last: "last" },
    list: [1],
  });
});

test("data must be a JSON object; an empty text is an empty object", () => {
  expect(["", "{", "[]", "null", `"text"`].map(parseData)).toEqual([{}, null, null, null, null]);
});

test("a variable named __proto__ changes no other object", () => {
  sampleData(["__proto__.polluted", "constructor.prototype.polluted"]);
  expect("polluted" in {}).toBe(false);
});

test("a field writes a string at its path, and a list or object if its input is one", () => {
  const data = withField(withField(`{"user": {"first": "Ana"}}`, "user.last", "Lima"), "items", `[{"n": 1}]`);
  expect(JSON.parse(data)).toEqual({ user: { first: "Ana", last: "Lima" }, items: [{ n: 1 }] });
  expect(JSON.parse(withField("{", "items", "[1"))).toEqual({ items: "[1" });
  expect(["user.last", "items", "gone.x"].map((path) => fieldOf(data, path))).toEqual([
    "Lima",
    `[{"n":1}]`,
    "",
  ]);
});

test("a field named __proto__ changes no other object", () => {
  withField("{}", "__proto__.polluted", "x");
  expect("polluted" in {}).toBe(false);
});
