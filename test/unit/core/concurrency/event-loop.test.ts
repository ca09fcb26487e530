import { expect, test } from "bun:test";
import {
  resumeTogether,
  MAX_TOGETHER,
  yieldToEventLoop,
} from "../../../../src/core/concurrency/event-loop.ts";

test("requests of one turn run together, step by step, after a shared preparation", async () => {
  const steps: string[] = [];
  const gathered = resumeTogether(() => steps.push("before"));
  const walk = async (name: string): Promise<void> => {
    await gathered();
    for (const step of [1, 2]) {
      steps.push(`${name}${step}`);
      await null;
    }
  };
  const walks = [walk("a")];
  // Lets the other task continue, as the event loop does between two sockets.
  await null;
  walks.push(walk("b"));
  steps.push("taken up");
  await Promise.all(walks);
  expect(steps).toEqual(["taken up", "before", "a1", "b1", "a2", "b2"]);
});

test("a request that arrives later waits for the next round, which prepares again", async () => {
  let looks = 0;
  const gathered = resumeTogether(() => looks++);
  await gathered();
  const late = gathered().then(() => looks);
  expect(looks).toBe(1);
  expect(await late).toBe(2);
});

test("if the shared preparation fails, the requests waiting for it fail and later ones do not", async () => {
  const troubles = [new Error("first")];
  const gathered = resumeTogether(() => {
    const trouble = troubles.pop();
    if (trouble !== undefined) throw trouble;
  });
  const both = await Promise.allSettled([gathered(), gathered()]);
  expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await yieldToEventLoop();
  await gathered();
});

test("if too many requests wait, the rest run in later turns, each with its own preparation", async () => {
  let looks = 0;
  let turns = 0;
  const gathered = resumeTogether(() => looks++);
  const went: string[] = [];
  const all = Array.from({ length: 2 * MAX_TOGETHER + 1 }, () =>
    gathered().then(() => went.push(`look ${looks} turn ${turns}`)),
  );
  while (went.length < all.length) {
    await yieldToEventLoop();
    turns++;
  }
  expect(went[0]).toStartWith("look 1 ");
  expect([...Map.groupBy(went, (how) => how).values()].map(({ length }) => length)).toEqual([
    MAX_TOGETHER,
    MAX_TOGETHER,
    1,
  ]);
  // No request waits, so the next one starts a new round.
  await gathered();
  expect(looks).toBe(4);
});
