/**
 * Least time before a row is hinted again, milliseconds; at most it is twice as long. The job may still wait in a queue or in
 * the lanes of another process, which this process cannot see.
 */
const REPEAT_AFTER_MS = 4_000;
/** Time after which a lost hint is repeated at the latest, milliseconds. */
export const LOST_HINT_MS = 2 * REPEAT_AFTER_MS;

/**
 * Remembers what the sweep hinted lately. A row that waits in one process looks due to all others. Without this each would
 * hint it every second, and the duplicates in the queue would delay new jobs.
 */
export class RecentHints {
  #younger = new Set<string>();
  #older = new Set<string>();
  #turnedAt = Number.NEGATIVE_INFINITY;

  /**
   * Notes a hint. Returns false if the row was hinted lately with the same due time.
   * @param now of `Clock.elapsed`
   */
  note(key: string, dueAt: number, now: number): boolean {
    this.#forget(now);
    const hinted = `${key} ${dueAt}`;
    if (this.#younger.has(hinted) || this.#older.has(hinted)) return false;
    this.#younger.add(hinted);
    return true;
  }

  #forget(now: number): void {
    const since = now - this.#turnedAt;
    if (since < REPEAT_AFTER_MS) return;
    this.#older = since < LOST_HINT_MS ? this.#younger : new Set();
    this.#younger = new Set();
    this.#turnedAt = now;
  }
}
