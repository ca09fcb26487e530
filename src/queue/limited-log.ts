import { atMostEvery, type Clock } from "../core/time/clock.ts";
import type { QueueName } from "./port.ts";

/** Dependencies of every queue adapter. */
export interface QueueDeps {
  clock: Clock;
  log: Record<"info" | "warn", (message: string, properties: Record<string, unknown>) => void>;
}

/** Time in which the lines of one message are counted, milliseconds. */
export const LOG_WINDOW_MS = 10_000;
/**
 * Maximum number of lines per message and window. If Redis is unreachable, every job fails, and the lines must not
 * fill the disk.
 */
export const MAX_LINES_PER_WINDOW = 5;

/** Logs a warning. Lines are counted by `message`, so it is a fixed text, and details belong in `properties`. */
export type LimitedLog = (message: string, properties: Record<string, unknown>) => void;

interface Window {
  startedAt: number;
  lines: number;
  suppressed: number;
}

/**
 * Returns a log of warnings with a limited rate. The first line of a window says how many lines were dropped before
 * it.
 */
export function createLimitedLog(deps: QueueDeps): LimitedLog {
  const windows = new Map<string, Window>();
  return (message, properties) => {
    const now = deps.clock.elapsed();
    let window = windows.get(message);
    let suppressed = 0;
    if (window === undefined || now - window.startedAt >= LOG_WINDOW_MS) {
      suppressed = window?.suppressed ?? 0;
      window = { startedAt: now, lines: 0, suppressed: 0 };
      windows.set(message, window);
    }
    if (window.lines >= MAX_LINES_PER_WINDOW) {
      window.suppressed += 1;
      return;
    }
    window.lines += 1;
    deps.log.warn(message, suppressed > 0 ? { ...properties, suppressed } : properties);
  };
}

/** Time between two lines about one queue that is full, milliseconds. */
export const OVERFLOW_LOG_MS = 60_000;

/** Logs how many jobs a full queue dropped for the sweep. */
export interface OverflowLog {
  add(queue: QueueName, jobs: number): void;
  close(): void;
}

/**
 * Logs dropped jobs at once, and then at most once per minute and queue. Each line counts those since the one before.
 * If the sweep adds a job again and it is dropped again, it counts again.
 */
export function createOverflowLog(
  clock: Clock,
  tell: (properties: { queue: QueueName; jobs: number }) => void,
): OverflowLog {
  const counts = new Map<QueueName, { jobs: number; mayTell: () => boolean }>();
  return {
    add(queue, jobs) {
      const count = counts.get(queue) ?? { jobs: 0, mayTell: atMostEvery(clock, OVERFLOW_LOG_MS) };
      counts.set(queue, count);
      count.jobs += jobs;
      if (!count.mayTell()) return;
      tell({ queue, jobs: count.jobs });
      count.jobs = 0;
    },
    close() {
      for (const [queue, { jobs }] of counts) if (jobs > 0) tell({ queue, jobs });
      counts.clear();
    },
  };
}

/** Messages of the Redis library that name its own parts, and what they mean here. */
const PLAIN_WORDS: readonly [library: RegExp, plain: string][] = [
  [/maxRetriesPerRequest/, "Redis cannot be reached"],
  [/Unknown RESP type/, "what answers at REDIS_URL is not Redis: check its host, port and scheme"],
];

/** Returns the message of an error in plain words, or the text of any other thrown value. */
export function reason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return PLAIN_WORDS.find(([library]) => library.test(message))?.[1] ?? message;
}
