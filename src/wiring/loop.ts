import type { Clock } from "../core/clock.ts";
import { log } from "../log.ts";

/** A job done again and again; each turn begins the pause after the one before has ended. */
export interface Loop {
  /** Lets no further turn begin, and waits for the one in hand. */
  stop(): Promise<void>;
}

/** Runs `turn` now and then every `pauseMs`. A turn that fails is logged, and the next one comes all the same. */
export function startLoop(clock: Clock, name: string, pauseMs: number, turn: () => Promise<void>): Loop {
  let stopped = false;
  let cancel = (): void => undefined;
  let inHand = Promise.resolve();
  const run = (): void => {
    inHand = turn()
      .catch((error: unknown) => log("app").error("a turn failed", { loop: name, error: String(error) }))
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
