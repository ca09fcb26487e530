import type { Clock } from "../core/clock.ts";

/**
 * Waits for `work` at most `limitMs`. True where it settled in time, false where it still goes on.
 * @throws what `work` rejects with in time; a later rejection is nobody's
 */
export async function within(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<boolean> {
  let cancel = (): void => {};
  const late = new Promise<false>((resolve) => {
    cancel = clock.after(limitMs, () => resolve(false));
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    cancel();
  }
}
