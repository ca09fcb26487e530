import { expect, test } from "bun:test";
import { gathering, MAX_TOGETHER, turn } from "../../src/core/turn.ts";

test("what comes in one turn goes on together, step by step, behind what is done first once for all", async () => {
  const steps: string[] = [];
  const gathered = gathering(() => steps.push("before"));
  const walk = async (name: string): Promise<void> => {
    await gathered();
    for (const step of [1, 2]) {
      steps.push(`${name}${step}`);
      await null;
    }
  };
  const walks = [walk("a")];
  // As the event loop does between two sockets.
  await null;
  walks.push(walk("b"));
  steps.push("taken up");
  await Promise.all(walks);
  expect(steps).toEqual(["taken up", "before", "a1", "b1", "a2", "b2"]);
});

test("what comes once they go on waits for the next time, with a look of its own", async () => {
  let looks = 0;
  const gathered = gathering(() => looks++);
  await gathered();
  const late = gathered().then(() => looks);
  expect(looks).toBe(1);
  expect(await late).toBe(2);
});

test("what is done first and fails ends all that wait for it, and none that come later", async () => {
  const troubles = [new Error("first")];
  const gathered = gathering(() => {
    const trouble = troubles.pop();
    if (trouble !== undefined) throw trouble;
  });
  const both = await Promise.allSettled([gathered(), gathered()]);
  expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await turn();
  await gathered();
});

test("more than can go together go on in one turn after the other, each time behind a look of their own", async () => {
  let looks = 0;
  let turns = 0;
  const gathered = gathering(() => looks++);
  const went: string[] = [];
  const all = Array.from({ length: 2 * MAX_TOGETHER + 1 }, () =>
    gathered().then(() => went.push(`look ${looks} turn ${turns}`)),
  );
  while (went.length < all.length) {
    await turn();
    turns++;
  }
  expect(went[0]).toStartWith("look 1 ");
  expect([...Map.groupBy(went, (how) => how).values()].map(({ length }) => length)).toEqual([
    ...[MAX_TOGETHER, MAX_TOGETHER, 1],
  ]);
  // Nobody waits: the next one begins anew.
  await gathered();
  expect(looks).toBe(4);
});
