import { describe, expect, test } from "bun:test";
import { Fifo, setBounded } from "../../../src/core/collections.ts";

describe("a Fifo returns items in the order in which they were added", () => {
  test("a Fifo returns items in the order in which they were added keeps order and size over thousands of interleaved adds and takes", () => {
    const fifo = new Fifo<number>();
    const taken: (number | undefined)[] = [];
    let added = 0;
    for (let round = 0; round < 2_000; round++) {
      for (let more = 0; more < 3; more++) fifo.add(added++);
      for (let less = 0; less < 2; less++) taken.push(fifo.take());
      expect(fifo.size).toBe(added - taken.length);
    }
    while (fifo.size > 0) taken.push(fifo.take());
    expect(taken).toEqual(Array.from({ length: added }, (_, at) => at));
  });

  test("a Fifo returns items in the order in which they were added returns nothing while empty, and works again after", () => {
    const fifo = new Fifo<string>();
    expect([fifo.take(), fifo.take(), fifo.size]).toEqual([undefined, undefined, 0]);
    fifo.add("a");
    expect([fifo.size, fifo.take(), fifo.take()]).toEqual([1, "a", undefined]);
  });
});

test("a bounded map keeps as many keys as its limit, and evicts the one set longest ago", () => {
  const map = new Map([["a", 1]]);
  setBounded(map, "b", 2, 2);
  expect([...map.keys()]).toEqual(["a", "b"]);
  setBounded(map, "a", 3, 2);
  expect([...map]).toEqual([
    ["b", 2],
    ["a", 3],
  ]);
  setBounded(map, "c", 4, 2);
  expect([...map]).toEqual([
    ["a", 3],
    ["c", 4],
  ]);
});
