import type { Clock } from "../core/clock.ts";
import type { QueueName } from "./port.ts";

/** Time between two lines about one queue, milliseconds. */
export const LEFT_OUT_WINDOW_MS = 60_000;

/** Tells of jobs that a queue had no room for and left to the sweep. */
export interface LeftOutLog {
  add(queue: QueueName, jobs: number): void;
  /** Tells what has not been told yet. */
  close(): void;
}

/** Jobs not told yet, and the timer that tells them. */
interface Window {
  jobs: number;
  cancel(): void;
}

/**
 * A line at once, then one a minute and queue for as long as there is more to tell. A job that the sweep brings and that
 * is left out again counts again.
 */
export function leftOutLog(
  clock: Clock,
  tell: (properties: { queue: QueueName; jobs: number }) => void,
): LeftOutLog {
  const windows = new Map<QueueName, Window>();
  const open = (queue: QueueName): void => {
    windows.set(queue, { jobs: 0, cancel: clock.after(LEFT_OUT_WINDOW_MS, () => end(queue)) });
  };
  const end = (queue: QueueName): void => {
    const jobs = windows.get(queue)?.jobs ?? 0;
    windows.delete(queue);
    if (jobs === 0) return;
    tell({ queue, jobs });
    open(queue);
  };
  return {
    add(queue, jobs) {
      const window = windows.get(queue);
      if (window !== undefined) {
        window.jobs += jobs;
        return;
      }
      tell({ queue, jobs });
      open(queue);
    },
    close() {
      for (const [queue, { jobs, cancel }] of windows) {
        cancel();
        if (jobs > 0) tell({ queue, jobs });
      }
      windows.clear();
    },
  };
}
