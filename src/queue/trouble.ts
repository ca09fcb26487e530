import type { Clock } from "../core/clock.ts";

/** What every adapter of the queue port is given. */
export interface QueueDeps {
  clock: Clock;
  log: Record<"info" | "warn", (message: string, properties: Record<string, unknown>) => void>;
}

/** Time over which lines of one kind of trouble are counted, milliseconds. */
export const TROUBLE_WINDOW_MS = 10_000;
/** Lines of one kind of trouble in a window: an unreachable Redis fails every job, and must not fill the disk with lines. */
export const TROUBLE_LINES = 5;

/** Logs one kind of trouble. `message` names the kind, so it is a fixed text; what varies goes into `properties`. */
export type Trouble = (message: string, properties: Record<string, unknown>) => void;

interface Window {
  startedAt: number;
  lines: number;
  suppressed: number;
}

/** A warning log of bounded rate; the first line of a window tells how many were left out before it. */
export function troubleLog(deps: QueueDeps): Trouble {
  const windows = new Map<string, Window>();
  return (message, properties) => {
    const now = deps.clock.now();
    let window = windows.get(message);
    let suppressed = 0;
    // Either way: a clock that was put back must not silence the log until it has come round again.
    if (window === undefined || Math.abs(now - window.startedAt) >= TROUBLE_WINDOW_MS) {
      suppressed = window?.suppressed ?? 0;
      window = { startedAt: now, lines: 0, suppressed: 0 };
      windows.set(message, window);
    }
    if (window.lines >= TROUBLE_LINES) {
      window.suppressed += 1;
      return;
    }
    window.lines += 1;
    deps.log.warn(message, suppressed > 0 ? { ...properties, suppressed } : properties);
  };
}

/** The text of whatever was thrown. */
export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
