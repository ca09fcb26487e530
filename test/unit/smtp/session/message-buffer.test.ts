import { describe, expect, test } from "bun:test";
import { MessageBuffer } from "../../../../src/smtp/session/message-buffer.ts";

const KIB = 1024;
const LIMIT = 3 * KIB * KIB + 5;

/** Octets that differ by position. */
const octets = (count: number): Uint8Array => Uint8Array.from({ length: count }, (_, at) => (at % 251) + 1);

function kept(whole: Uint8Array, piece: number): MessageBuffer {
  const message = new MessageBuffer(LIMIT);
  for (let at = 0; at < whole.length; at += piece) message.add(whole.subarray(at, at + piece));
  return message;
}

describe("a message is kept unchanged, however it was split", () => {
  for (const size of [0, 1, 1023, 64 * KIB, 64 * KIB + 1, KIB * KIB, KIB * KIB + 1, LIMIT])
    test.each([1000, 16 * KIB, KIB * KIB + 7, LIMIT])(`${size} octets in pieces of %i`, (piece) => {
      const whole = octets(size);
      const result = kept(whole, piece).result();
      expect("raw" in result && Buffer.from(result.raw).equals(whole)).toBe(true);
    });
});

test("a large message is kept in memory shared with threads, a small one in memory of its own size", () => {
  const rawOf = (size: number): Uint8Array => {
    const result = kept(octets(size), 16 * KIB).result();
    return "raw" in result ? result.raw : new Uint8Array();
  };
  expect(rawOf(64 * KIB + 1).buffer).toBeInstanceOf(SharedArrayBuffer);
  expect(rawOf(100).buffer.byteLength).toBe(100);
});

test("two messages one after another do not share memory", () => {
  const [first, second] = [octets(200 * KIB), octets(200 * KIB).fill(7)];
  const one = kept(first, KIB).result();
  const two = kept(second, KIB).result();
  expect("raw" in one && Buffer.from(one.raw).equals(first)).toBe(true);
  expect("raw" in two && Buffer.from(two.raw).equals(second)).toBe(true);
});

test("nothing is kept of a message one octet too large", () => {
  const message = kept(octets(LIMIT + 1), 64 * KIB);
  expect(message.result()).toEqual({ fault: "tooLarge" });
  expect(message.held).toBe(0);
});
