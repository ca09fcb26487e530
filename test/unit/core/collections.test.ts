import { describe, expect, test } from "bun:test";
import { Fifo, RankedMap, setBounded } from "../../../src/core/collections.ts";

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

describe("a map with ranks, one past its maximum, evicts", () => {
  const evicted = (before: readonly number[], now: readonly number[] = before) => {
    let ranks = before;
    const map = new RankedMap<number, number>(3, (at) => ranks[at] ?? 0, before.length - 1);
    for (const at of before.slice(0, -1).keys()) map.set(at, at);
    ranks = now;
    map.set(before.length - 1, before.length - 1);
    return [...before.keys()].filter((at) => map.get(at) === undefined);
  };
  test.each([
    ["the oldest of one rank", [0, 0, 0], undefined, [0]],
    ["the oldest of the lowest rank", [2, 1, 0, 0, 1], undefined, [2]],
    ["the newest, if all others have a higher rank", [2, 1, 1, 0], undefined, [3]],
    ["the oldest of the highest rank, if there is no other", [2, 2, 2], undefined, [0]],
    ["none whose rank has risen since", [0, 0, 1, 1], [2, 1, 1, 1], [2]],
    ["one whose rank has fallen since", [2, 1, 1], [2, 0, 1], [1]],
  ])("%s", (_, before, now, gone) => {
    expect(evicted(before, now)).toEqual(gone);
  });
});
