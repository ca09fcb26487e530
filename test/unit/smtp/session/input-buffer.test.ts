import { expect, test } from "bun:test";
import { InputBuffer, MAX_COMMAND_LINE_OCTETS } from "../../../../src/smtp/session/input-buffer.ts";

test("a line after discarded input is not taken for the end of an overlong one", () => {
  const input = new InputBuffer();
  input.add(Buffer.alloc(MAX_COMMAND_LINE_OCTETS + 1, "x"));
  expect(input.line()).toBeNull();
  // As STARTTLS does: after an overlong line the first command under TLS must not be refused.
  input.clear();
  input.add(Buffer.from("EHLO x\r\n"));
  expect(input.line()).toBe("EHLO x");
});

test.each([1, 2, 3, 7, 4096])("in pieces of %d octets a bare CR or LF ends no line", (octets) => {
  const wire = Buffer.from("\n\r\r\n\na\r\r\n\r\n\r\nNOOP\n\r\n");
  const input = new InputBuffer();
  const lines: unknown[] = [];
  for (let at = 0; at < wire.length; at += octets) {
    input.add(wire.subarray(at, at + octets));
    for (let line = input.line(); line !== null; line = input.line()) lines.push(line);
  }
  expect(lines).toEqual(["\n\r", "\na\r", "", "", "NOOP\n"]);
});
