/** The only source of time: wall clock and timers. Tests replace it. */
export interface Clock {
  /** Milliseconds since the Unix epoch, UTC. */
  now(): number;
  /**
   * Whole milliseconds since some moment, for durations within this process. Setting the wall clock does not change it,
   * and it never goes back. While the machine sleeps it may stand still, so a lease needs `now`.
   */
  elapsed(): number;
  /**
   * Calls `fire` once after `delayMs`, unless the returned function cancels it. A timer never keeps the process
   * alive.
   */
  after(delayMs: number, fire: () => void): () => void;
}

/** Longest delay of setTimeout, which takes a signed 32-bit number. A longer one would fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Resolves after `delayMs` on the given clock. */
export function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(delayMs, resolve);
  });
}

/** Starts a countdown. The returned function gives the milliseconds that are left, 0 at the end. */
export function remainingTime(clock: Clock, limitMs: number): () => number {
  const endsAt = clock.elapsed() + limitMs;
  return () => Math.max(0, endsAt - clock.elapsed());
}

/**
 * Returns the value of `work`, or `late` if it takes longer than `limitMs`.
 * @throws if `work` rejects in time; a later rejection is ignored
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
 * Returns the value of `work`.
 * @throws Error with the message `late` if it takes longer than `limitMs`; the error of `work` if that rejects in time
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

/** Returns a function that limits how often something is done: it returns true at first, and then once per `pauseMs`. */
export function atMostEvery(clock: Clock, pauseMs: number): () => boolean {
  let saidAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = clock.elapsed();
    if (now - saidAt < pauseMs) return false;
    saidAt = now;
    return true;
  };
}

/**
 * Returns a function that calls `read` at most once per `freshMs`, even if it failed. Other calls share the last
 * result, or wait for the read in progress.
 */
export function cacheFor<Value>(
  clock: Clock,
  freshMs: number,
  read: (now: number) => Promise<Value>,
): () => Promise<Value> {
  let last: { at: number; reading: Promise<Value> } | null = null;
  return () => {
    const at = clock.elapsed();
    if (last === null || at - last.at >= freshMs) last = { at, reading: read(clock.now()) };
    return last.reading;
  };
}

/**
 * Waits for `work`, at most `limitMs`. Returns true if it settled in time, false if it still runs.
 * @throws if `work` rejects in time; a later rejection is ignored
 */
export function settlesWithin(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<boolean> {
  return within(
    clock,
    limitMs,
    work.then(() => true),
    false,
  );
}
