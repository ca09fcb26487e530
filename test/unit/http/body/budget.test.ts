import { expect, test } from "bun:test";
import {
  createLargeBodyLimit,
  LARGE_BODY_OCTETS,
  MAX_BODIES_WAITING,
  MAX_LARGE_BODY_OCTETS,
  type RunForBody,
} from "../../../../src/http/body/budget.ts";

interface Work {
  begun: boolean;
  end: () => void;
  fail: () => void;
  result: Promise<string>;
}

function work(run: RunForBody, octets: number, owner = "snd_a"): Work {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const it: Work = {
    begun: false,
    end: () => resolve("done"),
    fail: () => reject(new Error("refused")),
    result: Promise.resolve(""),
  };
  it.result = run(owner, octets, () => {
    it.begun = true;
    return promise;
  });
  return it;
}

/** Event loop turns within which an admitted task starts. */
const settled = async () => {
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
};
const begun = (all: readonly Work[]) => all.map((one) => one.begun);
const HALF = MAX_LARGE_BODY_OCTETS / 2;

test("large bodies are worked on up to their octets together, one past that waits", async () => {
  const run = createLargeBodyLimit();
  const all = [work(run, HALF), work(run, HALF), work(run, LARGE_BODY_OCTETS)];
  await settled();
  expect(begun(all)).toEqual([true, true, false]);
  all[0]?.end();
  await settled();
  expect(begun(all)).toEqual([true, true, true]);
});

test("one that is larger than all together may be is worked on alone", async () => {
  const run = createLargeBodyLimit();
  const all = [work(run, MAX_LARGE_BODY_OCTETS + 1), work(run, LARGE_BODY_OCTETS)];
  await settled();
  expect(begun(all)).toEqual([true, false]);
  all[0]?.end();
  await settled();
  expect(begun(all)).toEqual([true, true]);
});

test("bodies of one owner keep their order: none passes a larger one that waits", async () => {
  const run = createLargeBodyLimit();
  const all = [work(run, HALF), work(run, MAX_LARGE_BODY_OCTETS), work(run, LARGE_BODY_OCTETS)];
  await settled();
  expect(begun(all)).toEqual([true, false, false]);
  all[0]?.end();
  await settled();
  expect(begun(all)).toEqual([true, true, false]);
});

test("owners take turns, however many bodies of one owner wait", async () => {
  const run = createLargeBodyLimit();
  const all = ["snd_a", "snd_a", "snd_a", "snd_a", "snd_a", "snd_b", "snd_b", "snd_c"].map((owner) =>
    work(run, MAX_LARGE_BODY_OCTETS, owner),
  );
  const order: number[] = [];
  for (let ended = 0; ended < all.length; ended++) {
    await settled();
    const at = all.findIndex((one, index) => one.begun && !order.includes(index));
    order.push(at);
    all[at]?.end();
  }
  expect(order).toEqual([0, 1, 5, 7, 2, 6, 3, 4]);
});

test("a small body never waits", () => {
  const run = createLargeBodyLimit();
  work(run, MAX_LARGE_BODY_OCTETS);
  expect(work(run, LARGE_BODY_OCTETS - 1).begun).toBe(true);
});

test("work that fails lets the next body start, and its caller gets the error", async () => {
  const run = createLargeBodyLimit();
  const [first, second] = [work(run, MAX_LARGE_BODY_OCTETS), work(run, MAX_LARGE_BODY_OCTETS)];
  await settled();
  first.fail();
  await expect(first.result).rejects.toThrow("refused");
  await settled();
  expect(second.begun).toBe(true);
  second.end();
  expect(await second.result).toBe("done");
});

test("one owner's bodies wait up to half of the places, and one more is 503 while another owner's still waits", async () => {
  const run = createLargeBodyLimit();
  const running = work(run, MAX_LARGE_BODY_OCTETS);
  const waiting = Array.from({ length: MAX_BODIES_WAITING / 2 }, () => work(run, LARGE_BODY_OCTETS));
  await expect(work(run, LARGE_BODY_OCTETS).result).rejects.toThrow("Too many large requests wait");
  const other = work(run, LARGE_BODY_OCTETS, "snd_b");
  running.end();
  await settled();
  expect([other.begun, waiting[0]?.begun]).toEqual([true, true]);
});
