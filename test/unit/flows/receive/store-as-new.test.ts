import { expect, test } from "bun:test";
import { createStoreAsNew, NO_GUESS_MS } from "../../../../src/flows/receive/store-as-new.ts";
import { ConstraintError, EngineError } from "../../../../src/store/sql/errors.ts";
import { manualClock } from "../../../support/manual-clock.ts";

const conflict = (): Error => {
  const cause = new Error("NOT NULL constraint failed: messages.created_at");
  return new ConstraintError(new EngineError(cause, "SQLITE_CONSTRAINT_NOTNULL", 0));
};

/** Stores a message that is in conflict in the first `conflicts` tries. Returns the guess of each try, and the outcome. */
async function storing(storeAsNew: ReturnType<typeof createStoreAsNew>, conflicts: number) {
  const guesses: boolean[] = [];
  const outcome = await storeAsNew(async (asNew) => {
    guesses.push(asNew);
    if (guesses.length <= conflicts) throw conflict();
    return "stored";
  });
  return { guesses, outcome };
}

test("a message is guessed to be new, and asked about if it is not", async () => {
  const storeAsNew = createStoreAsNew(manualClock());
  expect(await storing(storeAsNew, 0)).toEqual({ guesses: [true], outcome: "stored" });
  expect(await storing(storeAsNew, 1)).toEqual({ guesses: [true, false], outcome: "stored" });
});

test("after a wrong guess none is made for some seconds, so repeated messages undo few commits", async () => {
  const clock = manualClock();
  const storeAsNew = createStoreAsNew(clock);
  await storing(storeAsNew, 1);
  for (const wait of [0, NO_GUESS_MS]) {
    clock.advance(wait);
    expect((await storing(storeAsNew, 0)).guesses).toEqual([false]);
    expect((await storing(storeAsNew, 1)).guesses).toEqual([false, false]);
  }
  clock.advance(1);
  expect((await storing(storeAsNew, 0)).guesses).toEqual([true]);
});

test("a message in conflict each time is given up, and other errors are passed on", async () => {
  const storeAsNew = createStoreAsNew(manualClock());
  expect((await storing(storeAsNew, 10)).outcome).toBeNull();
  const failing = storeAsNew(() => Promise.reject(new Error("no disk")));
  expect(await failing.catch(String)).toBe("Error: no disk");
});
