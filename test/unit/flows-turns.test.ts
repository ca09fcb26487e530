import { describe, expect, test } from "bun:test";
import { Fifo } from "../../src/core/fifo.ts";
import { TURNS_A_ROUND, Turns } from "../../src/flows/dispatch/turns.ts";

describe("first in, first out", () => {
  test("keeps its order and its size over thousands taken and added in turns", () => {
    const row = new Fifo<number>();
    const taken: (number | undefined)[] = [];
    let added = 0;
    for (let round = 0; round < 2_000; round++) {
      for (let more = 0; more < 3; more++) row.add(added++);
      for (let less = 0; less < 2; less++) taken.push(row.take());
      expect(row.size).toBe(added - taken.length);
    }
    while (row.size > 0) taken.push(row.take());
    expect(taken).toEqual(Array.from({ length: added }, (_, at) => at));
  });

  test("gives nothing where nothing is, and goes on after", () => {
    const row = new Fifo<string>();
    expect([row.take(), row.take(), row.size]).toEqual([undefined, undefined, 0]);
    row.add("a");
    expect([row.size, row.take(), row.take()]).toEqual([1, "a", undefined]);
  });
});

describe("turns", () => {
  const inOrder = (front: number, behind: number): string => {
    const turns = new Turns<string>();
    for (let at = 0; at < front; at++) turns.add("f", false);
    for (let at = 0; at < behind; at++) turns.add("b", true);
    let order = "";
    for (let next = turns.take(); next !== null; next = turns.take()) {
      expect(next.behind).toBe(next.item === "b");
      order += next.item;
    }
    return order;
  };

  test.each([
    [10, 0, "ffffffffff"],
    [0, 4, "bbbb"],
    [8, 2, "ffffbffffb"],
    [2, 4, "ffbbbb"],
    [9, 1, "ffffbfffff"],
  ])("%d in front and %d behind go %s", (front, behind, order) => {
    expect(TURNS_A_ROUND).toBe(5);
    expect(inOrder(front, behind)).toBe(order);
  });
});
