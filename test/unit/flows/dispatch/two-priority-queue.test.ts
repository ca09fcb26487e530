import { describe, expect, test } from "bun:test";
import { ROUND_LENGTH, TwoPriorityQueue } from "../../../../src/flows/dispatch/two-priority-queue.ts";

describe("priorities", () => {
  const inOrder = (high: number, low: number): string => {
    const turns = new TwoPriorityQueue<string>();
    for (let at = 0; at < high; at++) turns.add("f", false);
    for (let at = 0; at < low; at++) turns.add("b", true);
    let order = "";
    for (let next = turns.take(); next !== null; next = turns.take()) {
      expect(next.low).toBe(next.item === "b");
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
  ])("%d items of high and %d of low priority are taken as %s", (high, low, order) => {
    expect(ROUND_LENGTH).toBe(5);
    expect(inOrder(high, low)).toBe(order);
  });
});
