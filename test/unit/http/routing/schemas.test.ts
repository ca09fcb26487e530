import { expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { check } from "../../../../src/core/validation.ts";
import { Search } from "../../../../src/http/routing/schemas.ts";

const Query = Type.Object({ q: Search("A part of it.") });

test.each([
  ["none", {}, true],
  ["one character", { q: "x" }, true],
  ["256 characters", { q: "x".repeat(256) }, true],
  ["257 characters", { q: "x".repeat(257) }, false],
  ["no character", { q: "" }, false],
  ["a NUL", { q: "a\u0000b" }, false],
])("a list with search conditions for %s", (_name, query, fits) => {
  expect(check(Query, query).length === 0).toBe(fits);
});
