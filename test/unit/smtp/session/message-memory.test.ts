import { describe, expect, test } from "bun:test";
import { ChunkReader } from "../../../../src/smtp/session/chunks.ts";
import { MessageBuffer, maxSharedOctets } from "../../../../src/smtp/session/message-buffer.ts";
import {
  COLLECTED_OCTETS,
  IDLE_MS,
  MAX_FREE,
  MessageMemory,
} from "../../../../src/smtp/session/message-memory.ts";
import { manualClock } from "../../../support/manual-clock.ts";

const KIB = 1024;
const LIMIT = 2 * KIB * KIB;

function scene() {
  const clock = manualClock();
  return { clock, memory: new MessageMemory(clock, maxSharedOctets(LIMIT)) };
}

/** A message of that many equal octets. */
function message(memory: MessageMemory, size: number, octet: number): Uint8Array {
  const kept = new MessageBuffer(LIMIT, memory);
  for (let at = 0; at < size; at += 16 * KIB)
    kept.add(new Uint8Array(Math.min(16 * KIB, size - at)).fill(octet));
  const result = kept.result();
  return "raw" in result ? result.raw : new Uint8Array();
}

describe("message memory is used again", () => {
  test("the next large message reuses the memory, and shows only its own octets", () => {
    const { memory } = scene();
    const first = message(memory, LIMIT, 1);
    memory.giveBack(first.buffer);
    const second = message(memory, 100 * KIB, 2);
    expect(second.buffer).toBe(first.buffer);
    expect(second.length).toBe(100 * KIB);
    expect(second.every((octet) => octet === 2)).toBe(true);
  });

  test("a larger message reuses the memory of the previous one", () => {
    const { memory } = scene();
    memory.giveBack(message(memory, 65 * KIB, 1).buffer);
    const larger = message(memory, LIMIT, 2);
    expect([larger.length, larger.every((octet) => octet === 2)]).toEqual([LIMIT, true]);
  });

  test("not before it is given back", () => {
    const { memory } = scene();
    const first = message(memory, 100 * KIB, 1);
    message(memory, 100 * KIB, 2);
    expect(first.every((octet) => octet === 1)).toBe(true);
  });

  test("if its message turns out faulty at once", () => {
    const { memory } = scene();
    const kept = new MessageBuffer(LIMIT, memory);
    kept.add(new Uint8Array(100 * KIB).fill(1));
    kept.foundBareLineEnd();
    kept.add(new Uint8Array(1).fill(1));
    kept.add(new Uint8Array(1).fill(1));
    expect(memory.free).toBe(1);
  });
});

describe("memory of a discarded message is given back", () => {
  test("if its fault shows only at its end", () => {
    const { memory } = scene();
    const chunks = new ChunkReader(LIMIT, memory);
    chunks.feed(new Uint8Array(100 * KIB).fill(1));
    chunks.feed(Uint8Array.of(0x0d));
    expect(chunks.end(true)).toEqual({ fault: "bareLineEnd" });
    expect(memory.free).toBe(1);
  });
});

describe("memory that is given back", () => {
  test("twice counts once, so that two messages never share it", () => {
    const { memory } = scene();
    const first = message(memory, 100 * KIB, 1);
    memory.giveBack(first.buffer);
    memory.giveBack(first.buffer);
    const [second, third] = [message(memory, 100 * KIB, 2), message(memory, 100 * KIB, 3)];
    expect(second.buffer).not.toBe(third.buffer);
    expect(second.every((octet) => octet === 2)).toBe(true);
  });

  test("memory that was not lent is ignored when it is given back", () => {
    const { memory } = scene();
    memory.giveBack(new SharedArrayBuffer(100));
    memory.giveBack(new ArrayBuffer(100));
    memory.giveBack(message(memory, 64 * KIB, 1).buffer);
    expect(memory.free).toBe(0);
  });

  test("memory that is given back is kept up to its number, and not one more", () => {
    const { memory } = scene();
    const messages = Array.from({ length: MAX_FREE + 1 }, () => message(memory, 100 * KIB, 1));
    for (const { buffer } of messages) memory.giveBack(buffer);
    expect(memory.free).toBe(MAX_FREE);
  });

  test("memory that is given back is freed if no large message has come for a while", () => {
    const { clock, memory } = scene();
    memory.giveBack(message(memory, 100 * KIB, 1).buffer);
    clock.advance(IDLE_MS - 1);
    expect(memory.free).toBe(1);
    clock.advance(1);
    expect(memory.free).toBe(0);
  });

  test("memory that is given back is freed too if the last large message does not give back its own", () => {
    const { clock, memory } = scene();
    const messages = [1, 2].map((octet) => message(memory, 100 * KIB, octet));
    for (const { buffer } of messages) memory.giveBack(buffer);
    message(memory, 100 * KIB, 3);
    clock.advance(IDLE_MS - 1);
    expect(memory.free).toBe(1);
    clock.advance(1);
    expect(memory.free).toBe(0);
  });
});

test("garbage is collected after that many octets of large messages, and not an octet earlier", () => {
  let collected = 0;
  const memory = new MessageMemory(manualClock(), LIMIT, () => collected++);
  memory.countReceived(COLLECTED_OCTETS - 1);
  expect(collected).toBe(0);
  memory.countReceived(1);
  expect(collected).toBe(1);
  memory.countReceived(COLLECTED_OCTETS - 1);
  expect(collected).toBe(1);
});
