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

/**
 * What `work` comes to in time.
 * @throws Error with `late` as its message where that takes longer than `limitMs`; what `work` rejects with
 */
export async function inTime<Value>(
  clock: Clock,
  limitMs: number,
  work: Promise<Value>,
  late: string,
): Promise<Value> {
  const found = await within(
    clock,
    limitMs,
    work.then((value) => ({ value })),
    null,
  );
  if (found === null) throw new Error(late);
  return found.value;
}

/**
 * Reads at most once in `freshMs`: who asks meanwhile gets what was read, or waits for the reading under way. Also anew
 * where the clock was put back.
 */
export function readFresh<Value>(
  clock: Clock,
  freshMs: number,
  read: (now: number) => Promise<Value>,
): () => Promise<Value> {
  let last: { at: number; reading: Promise<Value> } | null = null;
  return () => {
    const now = clock.now();
    if (last === null || Math.abs(now - last.at) >= freshMs) last = { at: now, reading: read(now) };
    return last.reading;
  };
}
