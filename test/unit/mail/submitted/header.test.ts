import { describe, expect, test } from "bun:test";
import { splitHeader } from "../../../../src/mail/submitted/header.ts";
import { MAX_HEADER_FIELDS, MAX_HEADER_OCTETS } from "../../../../src/mail/reading/raw-headers.ts";

function split(lines: readonly string[], body = "\r\nHi\r\n") {
  return splitHeader(Buffer.from(`${lines.map((line) => `${line}\r\n`).join("")}${body}`, "latin1"));
}

function kept(lines: readonly string[], body?: string): string {
  const header = split(lines, body);
  return typeof header === "string" ? header : header.octets.toString("latin1");
}

describe("the header of a submitted message", () => {
  test("the header of a submitted message is kept octet by octet, with folds, order, case and octets beyond ASCII", () => {
    const lines = ["Received: by x", "FROM :a@b.example", "Subject: a\r\n\tb  \r\n c", "X: \xe4\xff", "x: 2"];
    expect(kept(lines)).toBe(`${lines.join("\r\n")}\r\n\r\n`);
  });

  test("the header of a submitted message loses hidden recipients and control fields, also folded ones and in any case", () => {
    const hidden = [
      "bcc: x@y.example,\r\n z@y.example",
      "Resent-Bcc: q@y.example",
      "Return-Path: <a@b.example>",
    ];
    const control = ["IDEMPOTENCY-KEY: 1", "X-Postrider-Tag: a=b", "x-postrider-unknown: 1\r\n 2"];
    const header = split(["From: a@b.example", ...hidden, ...control, "To: c@d.example"]);
    if (typeof header === "string") throw new Error(header);
    expect(header.octets.toString()).toBe("From: a@b.example\r\nTo: c@d.example\r\n\r\n");
    expect(header.control.map(({ name }) => name)).toEqual([
      "idempotency-key",
      "x-postrider-tag",
      "x-postrider-unknown",
    ]);
  });

  test("the header of a submitted message may be all of the message, or empty", () => {
    expect(kept(["From: a@b.example"], "")).toBe("From: a@b.example\r\n\r\n");
    expect(kept([], "\r\nbody\r\n")).toBe("\r\n");
  });

  test.each([
    ["a line without a colon", ["From: a@b.example", "Hello there"]],
    ["an mbox line", ["From a@b.example Mon Jan 1 00:00:00 2026", "From: a@b.example"]],
    ["a name with a space", ["From: a@b.example", "X Y: z"]],
    ["a fold before any field", [" x", "From: a@b.example"]],
    ["an empty name", ["From: a@b.example", ": x"]],
  ])(
    "the header of a submitted message is refused with %s, after which readers could disagree",
    (_, lines) => {
      expect(kept(lines)).toMatch(/^Line [12] of the header is no field/);
    },
  );

  test.each([
    ["a vertical tab", "X: a\x0bFrom: b@c.example"],
    ["a form feed", "X: a\x0cFrom: b@c.example"],
    ["a record separator", "X: a\x1eFrom: b@c.example"],
    ["the line separator of Unicode", "X: a\xe2\x80\xa8From: b@c.example"],
    ["a next line", "X: a\xc2\x85From: b@c.example"],
  ])(
    "the header of a submitted message is refused with %s, after which a field could begin for others",
    (_, line) => {
      expect(kept(["From: a@b.example", line])).toContain("control character");
    },
  );

  test("the header of a submitted message is refused with a line over 998 octets, which a server could split before a field", () => {
    expect(kept([`X: ${"y".repeat(995)}`, `X-Postrider-Data: ${"y".repeat(9000)}`])).toStartWith("X: y");
    expect(kept([`X: ${"y".repeat(990)}From: b@c.example`])).toContain("A line of x is over 998 octets");
  });

  test("the header of a submitted message is refused with a field or an octet more than the limits", () => {
    const fields = Array.from({ length: MAX_HEADER_FIELDS }, () => "X: y");
    expect(kept(fields)).toStartWith("X: y");
    expect(kept([...fields, "X: y"])).toContain(`more than ${MAX_HEADER_FIELDS} fields`);
    expect(kept(["X: ".padEnd(MAX_HEADER_OCTETS, "y")])).toContain("has no end");
  });
});
