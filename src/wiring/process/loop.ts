import { type Clock, atMostEvery } from "../../core/time/clock.ts";
import { log } from "../../log.ts";

/**
 * Minimum time between two log lines of a failing loop, milliseconds. The log must not fill a disk that is already
 * full.
 */
const TELL_PAUSE_MS = 60_000;

/** A running loop. Each turn begins a pause after the end of the one before. */
export interface Loop {
  /** Starts no further turn, and waits for the running one. */
  stop(): Promise<void>;
}

/** Repeated work. The log and the metrics show its name, so there are only a few. */
export interface Chore {
  name: string;
  turn: () => Promise<void>;
}

export interface LoopDeps {
  clock: Clock;
  /** Returns the function to call at each failed turn of a loop. */
  failures: (loop: string) => () => void;
}

/**
 * Runs a chore's turn now, and again `pauseMs` after each end. A failed turn is counted and logged, and the loop continues.
 */
export function startLoop({ clock, failures }: LoopDeps, pauseMs: number, { name, turn }: Chore): Loop {
  const logFailure = failureLog(clock, name);
  const failed = failures(name);
  let stopped = false;
  let cancel = (): void => undefined;
  let inHand = Promise.resolve();
  const run = (): void => {
    inHand = turn()
      .catch((error: unknown) => {
        failed();
        logFailure(error);
      })
      .then(() => {
        if (!stopped) cancel = clock.after(pauseMs, run);
      });
  };
  run();
  return {
    async stop() {
      stopped = true;
      cancel();
      await inHand;
    },
  };
}

/** Logs failures of one loop, one per minute. `untold` counts those since the last line. */
function failureLog(clock: Clock, loop: string): (error: unknown) => void {
  const isToBeTold = atMostEvery(clock, TELL_PAUSE_MS);
  let untold = 0;
  return (error) => {
    if (!isToBeTold()) {
      untold += 1;
      return;
    }
    log("app").error("a turn failed", { loop, error: String(error), ...(untold > 0 ? { untold } : {}) });
    untold = 0;
  };
}
