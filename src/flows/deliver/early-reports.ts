import type { Clock } from "../../core/time/clock.ts";

/** Maximum number of reports that wait. Further ones are deferred at once. */
export const MAX_WAITING_REPORTS = 64;
/**
 * Pauses between reads, milliseconds: a second in all. Short ones come first, because most deliveries are recorded
 * within a few.
 */
export const REREAD_DELAYS_MS: readonly number[] = [20, 40, 80, 160, 300, 400];

/**
 * Holds reports that arrived before their delivery was recorded. A smarthost may send one within milliseconds of its
 * 250, and again only after seconds or minutes. Another process may write that record, so it is read again a few times.
 */
export interface EarlyReports {
  /**
   * Returns the first result of `look` that is not `early`. Returns `early` if none is, too many wait or the process
   * stops.
   */
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
        for (const ms of REREAD_DELAYS_MS) {
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
