import { describe, expect, test } from "bun:test";
import { AppError } from "../../../../src/core/errors.ts";
import { readControls } from "../../../../src/flows/submit/controls.ts";
import { splitHeader } from "../../../../src/mail/submitted/header.ts";

const NOW = Date.UTC(2026, 0, 1);

function read(...lines: string[]) {
  const header = splitHeader(Buffer.from(`${lines.join("\r\n")}\r\n\r\n`));
  if (typeof header === "string") throw new Error(header);
  return readControls(header.control, { maxScheduleDays: 30 }, NOW);
}

test("control fields are read, encoded and folded ones too", () => {
  const controls = read(
    "Idempotency-Key: order 42",
    "X-Postrider-Project: shop",
    "X-Postrider-Tag: kind=order",
    "X-Postrider-Tag: week=5",
    "X-Postrider-Template: welcome",
    "X-Postrider-Data: =?utf-8?q?=7B=22name=22=3A=22Gr=C3=BC=C3=9Fe=22=7D?=",
    "X-Postrider-Schedule:\r\n 2026-01-02T00:00:00Z",
    "X-Postrider-Track: OFF",
    "X-Postrider-Unsubscribe: on",
    "X-Postrider-Stream: transactional",
  );
  expect(controls).toEqual({
    idempotencyKey: "order 42",
    project: "shop",
    tags: [
      { name: "kind", value: "order" },
      { name: "week", value: "5" },
    ],
    template: "welcome",
    data: { name: "Grüße" },
    scheduledAt: NOW + 86_400_000,
    track: false,
    unsubscribeLink: true,
    stream: "transactional",
  });
});

test("a stream that does not exist is refused", () => {
  expect(() => read("X-Postrider-Stream: fast")).toThrow(AppError);
});

test("without control fields, nothing is asked for, and unknown ones have no effect", () => {
  const nothing = {
    idempotencyKey: null,
    project: null,
    tags: [],
    template: null,
    data: null,
    scheduledAt: null,
  };
  expect(read("X-Postrider-Colour: red")).toEqual({
    ...nothing,
    track: null,
    unsubscribeLink: false,
    stream: null,
  });
});

test("a schedule in the past sends now", () => {
  expect(read("X-Postrider-Schedule: 2025-12-31T00:00:00Z").scheduledAt).toBeNull();
});

describe("a malformed control field is refused with its name", () => {
  const nested = `${'{"a":'.repeat(32)}{}${"}".repeat(32)}`;
  test.each([
    ["Idempotency-Key", ["Idempotency-Key:"]],
    ["Idempotency-Key", [`Idempotency-Key: ${"x".repeat(257)}`]],
    ["Idempotency-Key", ["Idempotency-Key: a", "Idempotency-Key: b"]],
    ["X-Postrider-Project", ["X-Postrider-Project:"]],
    ["X-Postrider-Project", [`X-Postrider-Project: ${"x".repeat(65)}`]],
    ["X-Postrider-Tag", ["X-Postrider-Tag: order"]],
    ["X-Postrider-Tag", ["X-Postrider-Tag: a b=c"]],
    ["X-Postrider-Tag", Array.from({ length: 21 }, (_, at) => `X-Postrider-Tag: a${at}=b`)],
    ["X-Postrider-Data", ['X-Postrider-Data: {"a":1}']],
    ["X-Postrider-Data", ["X-Postrider-Template: t", "X-Postrider-Data: {a:1}"]],
    ["X-Postrider-Data", ["X-Postrider-Template: t", "X-Postrider-Data: [1]"]],
    ["X-Postrider-Data", ["X-Postrider-Template: t", `X-Postrider-Data: ${nested}`]],
    ["X-Postrider-Data", ["X-Postrider-Template: t", `X-Postrider-Data: {"a":"${"x".repeat(16 * 1024)}"}`]],
    ["X-Postrider-Schedule", ["X-Postrider-Schedule: tomorrow"]],
    ["X-Postrider-Schedule", ["X-Postrider-Schedule: 2026-02-01T00:00:00Z"]],
    ["X-Postrider-Track", ["X-Postrider-Track: maybe"]],
  ])("%s (%#)", (name, lines) => {
    const refusal = expect(() => read(...lines));
    refusal.toThrow(AppError);
    refusal.toThrow(name);
  });
});
