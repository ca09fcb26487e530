/** Delays in seconds after each failed attempt. The last one repeats. */
export interface RetrySchedule {
  delaysSeconds: readonly number[];
  /** Share of the delay by which it may vary in both directions, e.g. 0.2. */
  jitter: number;
  /** If true, the jitter only lengthens the delay. */
  onlyLonger?: boolean;
}

/**
 * Returns the milliseconds to wait after failed attempt number `attempt` (1-based).
 * @param random a number in [0, 1)
 */
export function retryDelayMs(schedule: RetrySchedule, attempt: number, random: number): number {
  const { delaysSeconds, jitter } = schedule;
  const seconds = delaysSeconds[Math.min(attempt, delaysSeconds.length) - 1] ?? 0;
  const swing = schedule.onlyLonger ? random * jitter : (random * 2 - 1) * jitter;
  return Math.round(seconds * 1000 * (1 + swing));
}
