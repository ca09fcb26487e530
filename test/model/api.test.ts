import { expect, setDefaultTimeout, test } from "bun:test";
import { type Failure, play, type Step, shrink, stepsOf } from "./run.ts";

/**
 * Sequences of all API requests, with time, workers and receivers, against a model written from the contract.
 * `MODEL_SEEDS=1..500 MODEL_STEPS=300` plays other seeds, or a single one.
 */
const [FIRST = 1, LAST = FIRST] = (process.env.MODEL_SEEDS ?? "1..8").split("..").map(Number);
const STEPS = Number(process.env.MODEL_STEPS ?? 150);
/** Time limit of one seed in milliseconds. If it fails, it is replayed until few steps are left. */
const TIMEOUT_MS = 600_000;
setDefaultTimeout(TIMEOUT_MS);
const SHOWN_CHARS = 400;

/** Report for a reader: the fewest steps that still fail, and their requests. */
async function explain(seed: number, steps: readonly Step[], failure: Failure): Promise<string> {
  const fewest = await shrink(seed, steps, failure);
  const last = (await play(seed, fewest)) ?? failure;
  const lines = last.trace.map((line) => line.slice(0, SHOWN_CHARS));
  return [`seed ${seed}, MODEL_STEPS=${steps.length}: ${last.sentence}`, ...lines].join("\n");
}

const seeds = Array.from({ length: LAST - FIRST + 1 }, (_, n) => FIRST + n);
test.each(seeds)(
  "in any order of operations, the API behaves as the contract says: seed %d",
  async (seed) => {
    const steps = stepsOf(seed, STEPS);
    const failure = await play(seed, steps);
    expect(failure === null ? null : await explain(seed, steps, failure)).toBeNull();
  },
);

test("a sequence that fails is reduced to the steps that make it fail", async () => {
  const steps = ["readContact", "nonsense", "time", "nonsense", "readContact"].map((name) => ({
    name,
    salt: 1,
  }));
  const failure = await play(1, steps);
  expect(failure?.at).toBe(1);
  expect(failure === null ? [] : await shrink(1, steps, failure)).toEqual([{ name: "nonsense", salt: 1 }]);
});
