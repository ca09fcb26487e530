import { expect, test } from "bun:test";
import { firstChars } from "../../src/core/first-chars.ts";

test.each([
  ["abc", 5, "abc"],
  ["abc", 2, "ab"],
  ["a😀", 3, "a😀"],
  ["a😀b", 2, "a\ufffd"],
  ["\ud800b", 2, "\ufffdb"],
  ["", 2, ""],
])("the first characters of %j, %d at most, are %j", (text, most, first) => {
  expect(firstChars(text, most)).toBe(first);
});
