import type { Clock } from "../core/time/clock.ts";

/** Dependencies of every queue adapter. */
export interface QueueDeps {
  clock: Clock;
  log: Record<"info" | "warn", (message: string, properties: Record<string, unknown>) => void>;
}

/** Time in which the lines of one message are counted, milliseconds. */
export const LOG_WINDOW_MS = 10_000;
/** Lines per message and window. If Redis is unreachable, every job fails, and the lines must not fill the disk. */
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

/** Returns the message of an error, or the text of any other thrown value. */
export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
