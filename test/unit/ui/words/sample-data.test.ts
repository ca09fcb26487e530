import { expect, test } from "bun:test";
import { parseData, sampleData, withMissing } from "../../../../src/ui/words/sample-data.ts";

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
