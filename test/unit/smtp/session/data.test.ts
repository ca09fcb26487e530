import { describe, expect, test } from "bun:test";
import { DataReader } from "../../../../src/smtp/session/data.ts";
import type { MessageResult } from "../../../../src/smtp/session/message-buffer.ts";
import { cpuMs } from "../../../support/cpu-time.ts";

const MAX = 1000;

function bytes(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

/** Feeds the parts one by one. Returns the result, and how many octets belong to the message. */
function read(parts: readonly Buffer[], maxBytes = MAX): { result: MessageResult | null; consumed: number } {
  const reader = new DataReader(maxBytes);
  let consumed = 0;
  for (const part of parts) {
    const end = reader.feed(part, 0);
    if (end >= 0) return { result: reader.result(), consumed: consumed + end };
    consumed += part.length;
  }
  return { result: null, consumed };
}

function show(result: MessageResult | null): string {
  if (result === null) return "(not ended)";
  return "fault" in result ? result.fault : JSON.stringify(Buffer.from(result.raw).toString("latin1"));
}

/** The whole, each split in two, each split in three, and octet by octet. */
function* splits(whole: Buffer): Generator<Buffer[]> {
  yield [whole];
  yield [...whole].map((octet) => Buffer.from([octet]));
  for (let one = 0; one <= whole.length; one++) {
    yield [whole.subarray(0, one), whole.subarray(one)];
    for (let two = one; two <= whole.length; two++)
      yield [whole.subarray(0, one), whole.subarray(one, two), whole.subarray(two)];
  }
}

const messages: { name: string; wire: string; message: string }[] = [
  { name: "an empty message", wire: ".\r\n", message: "" },
  { name: "an empty line", wire: "\r\n.\r\n", message: "\r\n" },
  { name: "two lines", wire: "a: b\r\n\r\nhello\r\n.\r\n", message: "a: b\r\n\r\nhello\r\n" },
  { name: "a stuffed dot", wire: "..\r\n.\r\n", message: ".\r\n" },
  { name: "a stuffed line", wire: "x\r\n..y\r\n.\r\n", message: "x\r\n.y\r\n" },
  { name: "two dots sent as three", wire: "...\r\n..\r\n.\r\n", message: "..\r\n.\r\n" },
  { name: "a dot that was not stuffed", wire: ".x\r\n.\r\n", message: "x\r\n" },
  { name: "dots within a line", wire: "a.b.\r\nc .\r\n.\r\n", message: "a.b.\r\nc .\r\n" },
  { name: "octets beyond ASCII", wire: "\xe4\xff\x80\r\n.\r\n", message: "\xe4\xff\x80\r\n" },
  {
    name: "control characters other than NUL",
    wire: "\x01\x0b\x1a\x7f\t\r\n.\r\n",
    message: "\x01\x0b\x1a\x7f\t\r\n",
  },
];

/** Each contains an end mark that some other server accepts, a second message after it, and then the true end. */
const SMUGGLED = "MAIL FROM:<x@y>\r\n";
const bareLineEnds: { name: string; wire: string }[] = [
  { name: "LF . LF", wire: `a\n.\n${SMUGGLED}.\r\n` },
  { name: "LF . CRLF", wire: `a\n.\r\n${SMUGGLED}.\r\n` },
  { name: "CRLF . LF", wire: `a\r\n.\n${SMUGGLED}.\r\n` },
  { name: "CRLF . CR", wire: `a\r\n.\r${SMUGGLED}.\r\n` },
  { name: "CR . CR", wire: `a\r.\r${SMUGGLED}.\r\n` },
  { name: "CR . CRLF", wire: `a\r.\r\n${SMUGGLED}.\r\n` },
  { name: "CR . LF", wire: `a\r.\n${SMUGGLED}.\r\n` },
  { name: "CRLF . CR CRLF", wire: `a\r\n.\r\r\n${SMUGGLED}.\r\n` },
  { name: "CRLF CR . CRLF", wire: `a\r\n\r.\r\n${SMUGGLED}.\r\n` },
  { name: "CR CRLF . CR CRLF", wire: `a\r\r\n.\r\r\n${SMUGGLED}.\r\n` },
  { name: "LF CR . LF CR", wire: `a\n\r.\n\r${SMUGGLED}.\r\n` },
  { name: "a bare LF at the start", wire: "\na\r\n.\r\n" },
  { name: "a bare CR at the start", wire: "\ra\r\n.\r\n" },
  { name: "a bare LF after a dot", wire: ".\na\r\n.\r\n" },
  { name: "a bare LF after a CRLF", wire: "a\r\n\nb\r\n.\r\n" },
  { name: "a CR doubled before LF", wire: "a\r\r\n.\r\n" },
];

describe("a message is read the same however it is split", () => {
  for (const { name, wire, message } of messages)
    test(name, () => {
      const whole = bytes(`${wire}QUIT\r\n`);
      for (const parts of splits(whole)) {
        const { result, consumed } = read(parts);
        expect(show(result)).toBe(JSON.stringify(message));
        expect(consumed).toBe(wire.length);
      }
    });
});

describe("a bare CR or LF refuses the message, which still ends at CRLF.CRLF", () => {
  for (const { name, wire } of bareLineEnds)
    test(name, () => {
      for (const parts of splits(bytes(`${wire}.\r\n`))) {
        const { result, consumed } = read(parts);
        expect(show(result)).toBe("bareLineEnd");
        expect(consumed).toBe(wire.length);
      }
    });
});

test("a NUL anywhere in the message refuses it, but not one after the message's end", () => {
  for (const wire of ["\0\r\n.\r\n", "a\0b\r\n.\r\n", "a\r\n\0\r\n.\r\n", ".\0\r\n.\r\n"])
    for (const parts of splits(bytes(wire))) expect(show(read(parts).result)).toBe("nul");
  expect(show(read([bytes("a\r\n.\r\n\0")]).result)).toBe(JSON.stringify("a\r\n"));
});

test("the reply names the same one of several faults, in whatever order they come", () => {
  const long = "x".repeat(10);
  for (const [wire, fault] of [
    [`\0${long}\r\n.\r\n`, "nul"],
    [`${long}\0\r\n.\r\n`, "nul"],
    [`${long}\0\n\r\n.\r\n`, "bareLineEnd"],
    [`\n\0${long}\r\n.\r\n`, "bareLineEnd"],
  ] as const)
    for (const parts of splits(bytes(wire))) expect(show(read(parts, 5).result)).toBe(fault);
});

test("the limit counts the message's own octets, without stuffed dots and the final dot's line", () => {
  const wire = bytes("..45678\r\n..\r\n.\r\n"); // ".45678" CRLF "." CRLF: 11 octets.
  for (const parts of splits(wire)) {
    expect(show(read(parts, 11).result)).toBe(JSON.stringify(".45678\r\n.\r\n"));
    expect(show(read(parts, 10).result)).toBe("tooLarge");
    expect(read(parts, 10).consumed).toBe(wire.length);
  }
});

test("only the end mark ends a message", () => {
  for (const wire of ["", ".", ".\r", "a\r\n.", "a\r\n.\r", "a\r\n..\r\n", "a.\r\n", "a\r\n .\r\n", "a\n.\n"])
    expect(read([bytes(wire)]).result).toBeNull();
});

test("random octets of the alphabet CR LF dot NUL x agree with a reader of one octet at a time", () => {
  const alphabet = ["\r", "\n", "\r\n", ".", "\r\n.", "x", "\0"];
  let seed = 1;
  const next = (below: number) => {
    seed = (seed * 48271) % 2147483647; // Lehmer's generator: the same octets in every run.
    return seed % below;
  };
  for (let round = 0; round < 3000; round++) {
    const letters = Array.from({ length: 1 + next(12) }, () => alphabet[next(next(2) === 0 ? 7 : 6)] ?? "x");
    const whole = bytes(`${letters.join("")}\r\n.\r\n`);
    const single = read([...whole].map((octet) => Buffer.from([octet])));
    const cut = next(whole.length);
    for (const parts of [[whole], [whole.subarray(0, cut), whole.subarray(cut)]]) {
      const { result, consumed } = read(parts);
      expect([show(result), consumed]).toEqual([show(single.result), single.consumed]);
    }
  }
});

test("a large message of many lines arrives octet for octet", () => {
  const line = `${"y".repeat(60)}\r\n`;
  const body = `${line.repeat(200)}..two\r\n`.repeat(100);
  const reader = new DataReader(body.length);
  const whole = bytes(`${body}.\r\n`);
  let end = -1;
  for (let at = 0; at < whole.length && end < 0; at += 1400)
    end = reader.feed(whole.subarray(at, at + 1400), 0);
  expect(end).toBeGreaterThan(0);
  const result = reader.result();
  if ("fault" in result) throw new Error(result.fault);
  expect(Buffer.from(result.raw).toString("latin1") === body.replaceAll("\r\n..", "\r\n.")).toBe(true);
});

test("a chunk of bare line ends is read in time proportional to its length", () => {
  for (const octet of ["\n", "\r", "a\n", "\r\n", ".\r\n.", "\n\r"]) {
    const hostile = bytes(octet.repeat(500_000));
    const started = cpuMs();
    new DataReader(MAX).feed(hostile, 0);
    expect(cpuMs() - started).toBeLessThan(2000);
  }
});

test("asking for the result before the end is a bug, and throws", () => {
  expect(() => new DataReader(MAX).result()).toThrow();
});
