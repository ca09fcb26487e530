import { expect, test } from "bun:test";
import { createGate } from "../../src/core/gate.ts";

test("as many as the limit run at a time, the rest in their order, one over the room not at all", async () => {
  const gate = createGate(2, 3);
  const begun: number[] = [];
  const ends = Array.from({ length: 6 }, () => Promise.withResolvers<void>());
  const runs = ends.map(({ promise }, at) =>
    gate.run(async () => {
      begun.push(at);
      await promise;
      return at;
    }),
  );
  expect(await runs[5]).toBeNull();
  expect(begun).toEqual([0, 1]);
  ends[1]?.resolve();
  await runs[1];
  for (const { resolve } of ends) resolve();
  expect(await Promise.all(runs)).toEqual([0, 1, 2, 3, 4, null]);
  expect(begun).toEqual([0, 1, 2, 3, 4]);
});

test("a task that fails makes way", async () => {
  const gate = createGate(1, 1);
  await gate.run(() => Promise.reject(new Error("no"))).catch(() => undefined);
  expect(await gate.run(async () => "next")).toBe("next");
});
