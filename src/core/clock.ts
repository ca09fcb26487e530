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
 * Tells how many milliseconds are left of a time that begins now, 0 once it is over. A clock that is put back meanwhile
 * makes it no longer than it was.
 */
export function timeLeft(clock: Clock, limitMs: number): () => number {
  const endsAt = clock.now() + limitMs;
  return () => Math.max(0, Math.min(limitMs, endsAt - clock.now()));
}

/**
 * The value of `work`, or `late` where it takes longer than `limitMs`.
 * @throws what `work` rejects with in time; a later rejection is ignored
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
 * The value of `work`.
 * @throws Error with `late` as its message where it takes longer than `limitMs`; what `work` rejects with in time
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
 * Tells whether something is to be done again: yes at first, and once `pauseMs` have passed since it last said so. A clock that was
 * put back does not lengthen the pause.
 */
export function seldom(clock: Clock, pauseMs: number): () => boolean {
  let saidAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = clock.now();
    if (Math.abs(now - saidAt) < pauseMs) return false;
    saidAt = now;
    return true;
  };
}

/**
 * Makes a reading that is done at most once in `freshMs`, failed ones included: who asks meanwhile gets what was read
 * last, or waits for the reading under way. A clock that was put back does not make what was read last any longer.
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
