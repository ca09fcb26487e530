import type { Clock } from "../core/clock.ts";

/** Does a piece of work and tells how long it took, from being asked to its end, and what came of it; thrown: `failed`. */
export async function timed<Result, Outcome>(
  clock: Clock,
  work: () => Promise<Result>,
  outcomeOf: (result: Result) => Outcome,
  tell: (seconds: number, outcome: Outcome | "failed") => void,
): Promise<Result> {
  const startedAt = clock.now();
  let outcome: Outcome | "failed" = "failed";
  try {
    const result = await work();
    outcome = outcomeOf(result);
    return result;
  } finally {
    tell((clock.now() - startedAt) / 1000, outcome);
  }
}
