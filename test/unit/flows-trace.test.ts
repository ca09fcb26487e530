import { describe, expect, test } from "bun:test";
import { withoutTrace, withRoom, withTrace } from "../../src/flows/receive/trace.ts";

const RAW = Buffer.from("Subject: Hi\r\n\r\nbody\r\n");
const TRACE = "Return-Path: <ü@a.test>\r\nReceived: from x\r\n\tby y\r\n";
const OTHERS = Buffer.alloc(9000, "o");
const whole = (trace: string): string => `${trace}${RAW}`;

describe("trace fields are put before a mail", () => {
  test.each([
    ["in memory of its own", (raw: Uint8Array) => withRoom(raw), true],
    ["in memory of somebody's", (raw: Uint8Array) => raw, false],
    // As a small Buffer lies in the runtime's pool, between others' bytes.
    ["in the middle of somebody's", (raw: Uint8Array) => Buffer.concat([OTHERS, raw]).subarray(9000), false],
  ])("%s", (_, placed, inPlace) => {
    const raw = placed(RAW);
    const before = Buffer.from(new Uint8Array(raw.buffer, 0, raw.byteOffset)).toString("latin1");
    const kept = withTrace(TRACE, raw);
    expect(Buffer.from(kept).toString()).toBe(whole(TRACE));
    expect(Buffer.from(withoutTrace(kept)).toString()).toBe(RAW.toString());
    expect(kept.buffer === raw.buffer).toBe(inPlace);
    if (!inPlace)
      expect(Buffer.from(new Uint8Array(raw.buffer, 0, raw.byteOffset)).toString("latin1")).toBe(before);
    expect(Buffer.from(raw).toString()).toBe(RAW.toString());
  });

  test.each([
    [4096, true],
    [4097, false],
  ])("of %i octets: in the room that is left for them: %p", (octets, inPlace) => {
    const raw = withRoom(RAW);
    const kept = withTrace("x".repeat(octets), raw);
    expect(Buffer.from(kept).toString()).toBe(whole("x".repeat(octets)));
    expect(kept.buffer === raw.buffer).toBe(inPlace);
  });
});
