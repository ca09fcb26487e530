import { expect, test } from "bun:test";
import {
  allowsRecipient,
  isWithinBounds,
  type KeyBounds,
  recipientRule,
  UNBOUND,
} from "../../../src/core/key-bounds.ts";

test.each([
  ["@Example.com", "@example.com"],
  ["@bücher.example", "@xn--bcher-kva.example"],
  ["@", null],
  ["Ana@Example.com", "ana@example.com"],
  ["example.com", null],
  ["", null],
])("the entry %j of allowRecipients is kept as %p", (text, rule) => {
  expect(recipientRule(text)).toBe(rule);
});

const to = (...allowRecipients: string[]): KeyBounds => ({ ...UNBOUND, allowRecipients });

test.each<[rules: KeyBounds, key: string, is: boolean]>([
  [UNBOUND, "a@b.example", true],
  [to(), "a@b.example", false],
  [to("@b.example"), "a@b.example", true],
  [to("@b.example"), "a@c.b.example", false],
  [to("@b.example"), "a@xb.example", false],
  [to("a@b.example"), "a@b.example", true],
  [to("a@b.example"), "c@b.example", false],
])("a key with the bounds %j may send to %s: %p", (bounds, key, is) => {
  expect(allowsRecipient(bounds, key)).toBe(is);
});

test.each<[outer: KeyBounds, inner: KeyBounds, is: boolean]>([
  [UNBOUND, UNBOUND, true],
  [UNBOUND, to("@b.example"), true],
  [to("@b.example"), UNBOUND, false],
  [to("@b.example"), to(), true],
  [to("@b.example"), to("a@b.example", "@b.example"), true],
  [to("@b.example"), to("a@b.example", "a@c.example"), false],
  [to("a@b.example"), to("@b.example"), false],
  [{ ...UNBOUND, approval: true }, UNBOUND, false],
  [{ ...UNBOUND, approval: true }, { ...UNBOUND, approval: true }, true],
  [UNBOUND, { ...UNBOUND, approval: true }, true],
])("a key with the bounds %j may make one with %j: %p", (outer, inner, is) => {
  expect(isWithinBounds(outer, inner)).toBe(is);
});
