/** The only source of time: wall clock and timers. Tests put their own in its place. */
export interface Clock {
  /** Milliseconds since the Unix epoch, UTC. */
  now(): number;
  /** Calls `fire` once after `delayMs`; the returned function cancels it. A timer never keeps the process alive. */
  after(delayMs: number, fire: () => void): () => void;
}

/** setTimeout takes a 32-bit signed delay; a longer one would fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Resolves after `delayMs` on the given clock. */
export function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(delayMs, resolve);
  });
}

/**
 * What `work` comes to, or `late` where that takes longer than `limitMs`.
 * @throws what `work` rejects with in time; a later rejection is nobody's
 */
export async function within<Value, Late>(
  clock: Clock,
  limitMs: number,
  work: Promise<Value>,
  late: Late,
): Promise<Value | Late> {
  const { promise: over, resolve } = Promise.withResolvers<Late>();
  const cancel = clock.after(limitMs, () => resolve(late));
  try {
    return await Promise.race([work, over]);
  } finally {
    cancel();
  }
}
