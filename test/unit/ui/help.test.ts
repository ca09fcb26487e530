import { expect, test } from "bun:test";
import { helpParts } from "../../../src/ui/words/help.ts";

test("a help text is split into words and code, and keeps the words of links alone", () => {
  expect(helpParts("`mx` or `relay`. [Quotas](operate.md#quotas) says more.")).toEqual([
    { text: "mx", code: true, at: 1 },
    { text: " or ", code: false, at: 2 },
    { text: "relay", code: true, at: 3 },
    { text: ". Quotas says more.", code: false, at: 4 },
  ]);
});
