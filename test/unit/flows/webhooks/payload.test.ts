import { expect, test } from "bun:test";
import { MAX_PUSHED_BODY_BYTES as MOST } from "../../../../src/flows/webhooks/payload.ts";
import { clipText } from "../../../../src/store/contents/body-start.ts";

const ROWS: [body: string, part: string | null, expected: { part: string | null; cut: boolean }][] = [
  ["that is absent", null, { part: null, cut: false }],
  ["at its limit", "x".repeat(MOST), { part: "x".repeat(MOST), cut: false }],
  ["one octet past it", "x".repeat(MOST + 1), { part: "x".repeat(MOST), cut: true }],
  [
    "at its limit in two octets a character",
    "é".repeat(MOST / 2),
    { part: "é".repeat(MOST / 2), cut: false },
  ],
  ["with a character across it", `${"x".repeat(MOST - 1)}éy`, { part: "x".repeat(MOST - 1), cut: true }],
  [
    "with a pair of surrogates across it",
    `${"x".repeat(MOST - 3)}😀`,
    { part: "x".repeat(MOST - 3), cut: true },
  ],
  ["followed by a surrogate pair", `${"x".repeat(MOST)}😀`, { part: "x".repeat(MOST), cut: true }],
  ["many times as long", "é".repeat(4 * MOST), { part: "é".repeat(MOST / 2), cut: true }],
];

test.each(ROWS)("an event carries as much of a body %s as fits", (_body, part, expected) => {
  expect(clipText(part, MOST)).toEqual(expected);
});
