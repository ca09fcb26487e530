import { expect, test } from "bun:test";
import { MAX_SLICES, dotStuffed } from "../../../../src/smtp/client/stuffing.ts";

const onWire = (text: string): string =>
  Buffer.concat(dotStuffed(Buffer.from(text, "latin1"))).toString("latin1");

test.each([
  ["a\r\n", "a\r\n.\r\n"],
  ["", ".\r\n"],
  [".\r\n", "..\r\n.\r\n"],
  ["..\r\n", "...\r\n.\r\n"],
  ["a\r\n.b\r\n", "a\r\n..b\r\n.\r\n"],
  ["a\r\n.\r\nb\r\n", "a\r\n..\r\nb\r\n.\r\n"],
  ["a\r\n.\r\n.\r\n", "a\r\n..\r\n..\r\n.\r\n"],
  ["a.b\r\nc.\r\n", "a.b\r\nc.\r\n.\r\n"],
  ["no end", "no end\r\n.\r\n"],
  ["no end\r\n.", "no end\r\n..\r\n.\r\n"],
  ["\r\n.\r\n", "\r\n..\r\n.\r\n"],
  // A peer that ends lines at a bare LF must not see an end of the message inside it.
  ["a\n.\nMAIL\r\n", "a\n..\nMAIL\r\n.\r\n"],
  ["a\n.\r\nMAIL\r\n", "a\n..\r\nMAIL\r\n.\r\n"],
])("%j is sent as %j", (text, expected) => {
  expect(onWire(text)).toBe(expected);
});

test("removing the dots again gives the message, whatever it contains", () => {
  // A generator with a fixed seed, so that failures repeat (Numerical Recipes' constants).
  let seed = 3;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return (seed >>> 8) % below;
  };
  const pieces = [".", "..", "\r\n", "\r\n.", "a", "\xff", "\r\n.\r\n"];
  for (let turn = 0; turn < 5000; turn++) {
    const text = `${Array.from({ length: random(12) }, () => pieces[random(pieces.length)]).join("")}\r\n`;
    const wire = onWire(text);
    expect(wire.endsWith("\r\n.\r\n")).toBe(true);
    expect(wire.indexOf("\r\n.\r\n")).toBe(wire.length - 5);
    expect(wire.slice(0, -3).replace(/(^|\r\n)\./g, "$1")).toBe(text);
  }
});

test("a message of dots is sent in few pieces", () => {
  const lines = 100_000;
  for (const line of [".\r\n", "..\n", ".a\r\n"]) {
    const text = `x\r\n${line.repeat(lines)}`;
    const pieces = dotStuffed(Buffer.from(text, "latin1"));
    expect(pieces.length).toBeLessThanOrEqual(MAX_SLICES + 4);
    const wire = Buffer.concat(pieces).toString("latin1");
    expect(wire === `x\r\n${`.${line}`.repeat(lines)}${line.endsWith("\r\n") ? "" : "\r\n"}.\r\n`).toBe(true);
  }
});

test("a large message is sent without a copy", () => {
  const raw = Buffer.alloc(1_000_000, "x");
  const [first] = dotStuffed(raw);
  expect(first?.buffer).toBe(raw.buffer);
});
