import type { Clock } from "../../core/time/clock.ts";

/** Runs some work, and reports its duration and outcome, which is `failed` if it throws. */
export async function timed<Result, Outcome>(
  clock: Clock,
  work: () => Promise<Result>,
  outcomeOf: (result: Result) => Outcome,
  tell: (seconds: number, outcome: Outcome | "failed") => void,
): Promise<Result> {
  const startedAt = clock.elapsed();
  let outcome: Outcome | "failed" = "failed";
  try {
    const result = await work();
    outcome = outcomeOf(result);
    return result;
  } finally {
    tell((clock.elapsed() - startedAt) / 1000, outcome);
  }
}

/** Interval of the measurements, milliseconds. */
export const LAG_LOOK_MS = 250;

/** Measures repeatedly how late a timer fires, which is the lag of the event loop. Returns a function that stops it. */
export function watchLag(clock: Clock, tell: (seconds: number) => void): () => void {
  let cancel = (): void => undefined;
  const look = (): void => {
    const due = clock.elapsed() + LAG_LOOK_MS;
    cancel = clock.after(LAG_LOOK_MS, () => {
      tell((clock.elapsed() - due) / 1000);
      look();
    });
  };
  look();
  return () => cancel();
}
