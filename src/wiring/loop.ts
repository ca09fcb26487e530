import { type Clock, seldom } from "../core/clock.ts";
import { log } from "../log.ts";

/** Time in which a loop that goes on failing is told of once, milliseconds: a disk must not be filled by saying that it is full. */
const TELL_PAUSE_MS = 60_000;

/** A job done again and again; each turn begins the pause after the one before has ended. */
export interface Loop {
  /** Lets no further turn begin, and waits for the one in hand. */
  stop(): Promise<void>;
}

/** What is done again and again, under a name by which the log and the metrics tell of it: one of a short list. */
export interface Chore {
  name: string;
  turn: () => Promise<void>;
}

export interface LoopDeps {
  clock: Clock;
  /** What is to be told of each turn of a loop that fails. */
  failures: (loop: string) => () => void;
}

/**
 * Runs a chore's turn now and then every `pauseMs`. One that fails is counted and logged, and the next one comes all the same.
 */
export function startLoop({ clock, failures }: LoopDeps, pauseMs: number, { name, turn }: Chore): Loop {
  const tell = failureLog(clock, name);
  const failed = failures(name);
  let stopped = false;
  let cancel = (): void => undefined;
  let inHand = Promise.resolve();
  const run = (): void => {
    inHand = turn()
      .catch((error: unknown) => {
        failed();
        tell(error);
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

/** Logs failures of one loop, one a minute; `untold`: how many there were since the line before. */
function failureLog(clock: Clock, loop: string): (error: unknown) => void {
  const isToBeTold = seldom(clock, TELL_PAUSE_MS);
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
