import { expect, test } from "bun:test";
import type { AuditEntry } from "../../../../../src/ui/api/types.ts";
import { actionText, targetText } from "../../../../../src/ui/pages/audit/words.ts";

const entry = (target: AuditEntry["target"], changes: AuditEntry["changes"] = {}) =>
  ({ action: "sign_in.refuse", requestId: "req_1", target, changes }) as AuditEntry;

test.each([
  ["an address that the provider named", { id: "req_1", name: "eva@x.test" }, "provider", "eva@x.test"],
  ["a key", { id: "req_1", name: null }, "key", "by an API key"],
  ["a link", { id: "req_1", name: null }, "link", "by a link"],
  ["no address of the provider", { id: "req_1", name: null }, "provider", "by the provider"],
  ["another kind of change", { id: "dom_1", name: null }, null, "dom_1"],
])("a refused sign-in by %s never shows its request as what changed", (_by, target, how, shown) => {
  const made = entry({ type: "sign_in", ...target }, how === null ? {} : { how: [null, how] });
  expect([actionText(made), targetText(made)]).toEqual(["Sign-in refused", shown]);
});
