import { expect, test } from "bun:test";
import { nearField } from "../../../src/core/field-names.ts";

test.each([
  ["reply_to", "replyTo"],
  ["SUBJECT", "subject"],
  ["subjct", "subject"],
  ["subjectt", "subject"],
  ["subjekt", "subject"],
  ["subjkt", null],
  ["sub", null],
  [`${"-".repeat(57)}subject`, "subject"],
  [`${"-".repeat(58)}subject`, null],
])("the name %s resembles the field %p", (name, field) => {
  expect(nearField(name, ["replyTo", "subject"])).toBe(field);
});
