import { expect, test } from "bun:test";
import { slugOf, firstChars, isAsciiText } from "../../../src/core/text.ts";
test.each([
  ["", true],
  ["\0 a\r\n\x7f", true],
  ["a\x80", false],
  ["ü", false],
  ["\ud800", false],
  ["😀", false],
  ["x\n€", false],
])("%j is ASCII: %p", (text, is) => {
  expect(isAsciiText(text)).toBe(is);
});

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

test.each([
  ["Order confirmation", 64, "order-confirmation"],
  ["  Ünïcode & Co. ", 64, "unicode-co"],
  ["日本語", 64, ""],
  ["--", 64, ""],
  // No hyphen at either end, wherever the limit cuts, and as many characters as fit.
  ["abc def", 4, "abc"],
  ["-abcdef", 4, "abcd"],
])("%j in %d characters is %j", (name, maxChars, slug) => {
  expect(slugOf(name, maxChars)).toBe(slug);
});
