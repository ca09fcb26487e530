import type { Clock } from "../../core/clock.ts";

/** Reports that wait at a time; of more each is sent back at once. */
export const MAX_WAITING_REPORTS = 64;
/** Pauses between looks, milliseconds: a second in all, and short ones first, as most deliveries are recorded within few. */
export const LOOK_AGAIN_MS: readonly number[] = [20, 40, 80, 160, 300, 400];

/**
 * Has reports that have overtaken the record of their delivery wait for it within the answer. A smarthost may send one
 * within milliseconds of its 250, and come again only after seconds or minutes. What they wait for may be written by
 * another process, so they look again rather than being told.
 */
export interface EarlyReports {
  /** What `look` says once that is not `early`; `early` where it stays so, too many wait or a stop has begun. */
  wait<Taken>(early: Taken, look: () => Promise<Taken>): Promise<Taken>;
  /** Ends all waiting, now and from now on. */
  end(): void;
}

export function earlyReports(clock: Clock): EarlyReports {
  const waiting = new Set<() => void>();
  let count = 0;
  let ended = false;
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const wake = (): void => {
        cancel();
        waiting.delete(wake);
        resolve();
      };
      const cancel = clock.after(ms, wake);
      waiting.add(wake);
    });
  return {
    async wait(early, look) {
      if (count >= MAX_WAITING_REPORTS) return early;
      count++;
      try {
        for (const ms of LOOK_AGAIN_MS) {
          if (ended) break;
          await pause(ms);
          const taken = await look();
          if (taken !== early) return taken;
        }
        return early;
      } finally {
        count--;
      }
    },
    end() {
      ended = true;
      for (const wake of [...waiting]) wake();
    },
  };
}
