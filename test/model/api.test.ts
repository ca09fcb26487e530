import { expect, test } from "bun:test";
import { type Failure, play, type Step, shrink, stepsOf } from "./run.ts";

/**
 * Sequences of all that the API can be asked for, with time, workers and receivers, against a model that was written
 * from the contract. `MODEL_SEEDS=1..500 MODEL_STEPS=300` plays others, a single seed too.
 */
const [FIRST = 1, LAST = FIRST] = (process.env.MODEL_SEEDS ?? "1..8").split("..").map(Number);
const STEPS = Number(process.env.MODEL_STEPS ?? 150);
/** Time of one seed, milliseconds: one that fails is played over and over until little of it is left. */
const TIMEOUT_MS = 600_000;
const SHOWN_CHARS = 400;

/** What a reader needs to see what is wrong: the fewest steps that still fail, and what they asked for. */
async function explain(seed: number, steps: readonly Step[], failure: Failure): Promise<string> {
  const fewest = await shrink(seed, steps, failure);
  const last = (await play(seed, fewest)) ?? failure;
  const lines = last.trace.map((line) => line.slice(0, SHOWN_CHARS));
  return [`seed ${seed}, MODEL_STEPS=${steps.length}: ${last.sentence}`, ...lines].join("\n");
}

const seeds = Array.from({ length: LAST - FIRST + 1 }, (_, n) => FIRST + n);
test.each(seeds)(
  "whatever is done in whatever order, the API does what the contract says: seed %d",
  async (seed) => {
    const steps = stepsOf(seed, STEPS);
    const failure = await play(seed, steps);
    expect(failure === null ? null : await explain(seed, steps, failure)).toBeNull();
  },
  TIMEOUT_MS,
);

test("a sequence that fails is cut down to the steps that make it fail", async () => {
  const steps = ["readContact", "nonsense", "time", "nonsense", "readContact"].map((name) => ({
    name,
    salt: 1,
  }));
  const failure = await play(1, steps);
  expect(failure?.at).toBe(1);
  expect(failure === null ? [] : await shrink(1, steps, failure)).toEqual([{ name: "nonsense", salt: 1 }]);
});
