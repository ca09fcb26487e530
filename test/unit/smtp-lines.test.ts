import { expect, test } from "bun:test";
import { Input, MAX_COMMAND_LINE_OCTETS } from "../../src/smtp/lines.ts";

test("a line behind what was thrown away is not taken for the end of an overlong one", () => {
  const input = new Input();
  input.add(Buffer.alloc(MAX_COMMAND_LINE_OCTETS + 1, "x"));
  expect(input.line()).toBeNull();
  // As STARTTLS does: whoever is on the way must not have the first command behind it refused.
  input.clear();
  input.add(Buffer.from("EHLO x\r\n"));
  expect(input.line()).toBe("EHLO x");
});
