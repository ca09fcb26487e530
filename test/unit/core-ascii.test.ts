import { expect, test } from "bun:test";
import { isAsciiText } from "../../src/core/ascii.ts";

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
