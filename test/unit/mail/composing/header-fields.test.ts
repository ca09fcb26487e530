import { expect, test } from "bun:test";
import { headerField, messageIds, unstructured } from "../../../../src/mail/composing/header-fields.ts";

test.each([
  ["a word of 900 characters", "x".repeat(900), true],
  ["a word of 901 characters", "x".repeat(901), false],
  ["short words of 2000 characters in all", "short ".repeat(333).trim(), true],
  ["what looks like an encoded word", "=?", false],
])("text with %s stays as it is: %p", (_name, text, stays) => {
  expect(unstructured(text) === text).toBe(stays);
});

test("a field is folded when a line would have more than 76 characters", () => {
  const field = (octets: number) => headerField("X", `a ${"b".repeat(octets - "X: a ".length)}`);
  expect(field(76)).toBe(`X: a ${"b".repeat(71)}\r\n`);
  expect(field(77)).toBe(`X: a\r\n ${"b".repeat(72)}\r\n`);
});

test("a field name has at most 76 characters", () => {
  expect(headerField("X".repeat(76), "a")).toBe(`${"X".repeat(76)}: a\r\n`);
  expect(() => headerField("X".repeat(77), "a")).toThrow("is not a header field name");
});

test("a message id has at most 997 octets, which fit a line after a space", () => {
  const id = (octets: number) => `<${"i".repeat(octets - 2)}>`;
  expect(messageIds(`${id(997)}  ${id(998)}`, false)).toBe(id(997));
  expect(messageIds("<é@a.example> <b@a.example>", false)).toBe("<b@a.example>");
  expect(messageIds("<é@a.example> <b@a.example>", true)).toBe("<é@a.example> <b@a.example>");
});
