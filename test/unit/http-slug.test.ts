import { expect, test } from "bun:test";
import { slugOf } from "../../src/http/slug.ts";

test.each([
  ["Order confirmation", 64, "order-confirmation"],
  ["  Ünïcode & Co. ", 64, "unicode-co"],
  ["日本語", 64, ""],
  ["--", 64, ""],
  // No hyphen at either end, wherever the limit falls, and as many characters as it leaves room for.
  ["abc def", 4, "abc"],
  ["-abcdef", 4, "abcd"],
])("%j in %d characters is %j", (name, maxChars, slug) => {
  expect(slugOf(name, maxChars)).toBe(slug);
});
