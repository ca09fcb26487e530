import { expect, test } from "bun:test";
import { BodyTurns, LARGE_BODY_OCTETS, MAX_OCTETS_IN_HAND } from "../../src/http/body-turns.ts";

interface Work {
  begun: boolean;
  end: () => void;
  fail: () => void;
  result: Promise<string>;
}

function work(turns: BodyTurns, octets: number, owner = "snd_a"): Work {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const it: Work = {
    begun: false,
    end: () => resolve("done"),
    fail: () => reject(new Error("refused")),
    result: Promise.resolve(""),
  };
  it.result = turns.run(owner, octets, () => {
    it.begun = true;
    return promise;
  });
  return it;
}

/** Turns of the event loop in which whoever has its turn begins. */
const settled = async () => {
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
};
const begun = (all: readonly Work[]) => all.map((one) => one.begun);
const HALF = MAX_OCTETS_IN_HAND / 2;

test("large bodies are worked on up to their octets together, one past that waits", async () => {
  const turns = new BodyTurns();
  const all = [work(turns, HALF), work(turns, HALF), work(turns, LARGE_BODY_OCTETS)];
  await settled();
  expect(begun(all)).toEqual([true, true, false]);
  all[0]?.end();
  await settled();
  expect(begun(all)).toEqual([true, true, true]);
});

test("one that is larger than all together may be is worked on alone", async () => {
  const turns = new BodyTurns();
  const all = [work(turns, MAX_OCTETS_IN_HAND + 1), work(turns, LARGE_BODY_OCTETS)];
  await settled();
  expect(begun(all)).toEqual([true, false]);
  all[0]?.end();
  await settled();
  expect(begun(all)).toEqual([true, true]);
});

test("of one owner first come, first served: nobody passes one that waits for more room", async () => {
  const turns = new BodyTurns();
  const all = [work(turns, HALF), work(turns, MAX_OCTETS_IN_HAND), work(turns, LARGE_BODY_OCTETS)];
  await settled();
  expect(begun(all)).toEqual([true, false, false]);
  all[0]?.end();
  await settled();
  expect(begun(all)).toEqual([true, true, false]);
});

test("owners have their turns one after the other, however many wait of one", async () => {
  const turns = new BodyTurns();
  const all = ["snd_a", "snd_a", "snd_a", "snd_a", "snd_a", "snd_b", "snd_b", "snd_c"].map((owner) =>
    work(turns, MAX_OCTETS_IN_HAND, owner),
  );
  const order: number[] = [];
  for (let ended = 0; ended < all.length; ended++) {
    await settled();
    const at = all.findIndex((one, index) => one.begun && !order.includes(index));
    order.push(at);
    all[at]?.end();
  }
  // The second one was the next of all before anybody else came, and the third the first in turn.
  expect(order).toEqual([0, 1, 2, 5, 7, 3, 6, 4]);
});

test("a small body never waits", () => {
  const turns = new BodyTurns();
  work(turns, MAX_OCTETS_IN_HAND);
  expect(work(turns, LARGE_BODY_OCTETS - 1).begun).toBe(true);
});

test("work that fails makes room, too, and fails for whoever asked", async () => {
  const turns = new BodyTurns();
  const [first, second] = [work(turns, MAX_OCTETS_IN_HAND), work(turns, MAX_OCTETS_IN_HAND)];
  await settled();
  first.fail();
  await expect(first.result).rejects.toThrow("refused");
  await settled();
  expect(second.begun).toBe(true);
  second.end();
  expect(await second.result).toBe("done");
});
