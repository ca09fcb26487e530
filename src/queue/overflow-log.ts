import type { Clock } from "../core/time/clock.ts";
import type { QueueName } from "./port.ts";

/** Time between two lines about one queue, milliseconds. */
export const OVERFLOW_LOG_MS = 60_000;

/** Logs how many jobs a full queue dropped for the sweep. */
export interface OverflowLog {
  add(queue: QueueName, jobs: number): void;
  /** Logs the rest. */
  close(): void;
}

/** Jobs that are not logged yet, and the timer that will log them. */
interface Window {
  jobs: number;
  cancel(): void;
}

/**
 * Logs at once, and then once per minute and queue while more jobs are dropped. If the sweep adds a job again and it
 * is dropped again, it counts again.
 */
export function createOverflowLog(
  clock: Clock,
  tell: (properties: { queue: QueueName; jobs: number }) => void,
): OverflowLog {
  const windows = new Map<QueueName, Window>();
  const open = (queue: QueueName): void => {
    windows.set(queue, { jobs: 0, cancel: clock.after(OVERFLOW_LOG_MS, () => end(queue)) });
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
