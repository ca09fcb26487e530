/**
 * Time for which a hint is left to do its work, milliseconds; it is remembered for up to twice as long. Jobs wait in the lanes of
 * another process for longer than a turn of the sweep, and nobody sees from outside what a queue still has.
 */
const HINT_REST_MS = 4_000;
/** Milliseconds after which what a queue has lost is hinted again at the latest. */
export const LOST_HINT_MS = 2 * HINT_REST_MS;

/**
 * What the sweep has hinted lately. A row that waits in the lanes of one process is due in the eyes of all others: without this each of
 * them would hint it each second, and what a queue has more than twice over keeps what is new from its turn.
 */
export class RecentHints {
  #younger = new Set<string>();
  #older = new Set<string>();
  #turnedAt = Number.NEGATIVE_INFINITY;

  /**
   * Whether the row was not hinted lately, and notes that it is. One that has become due anew is another.
   * @param now milliseconds
   */
  note(key: string, dueAt: number, now: number): boolean {
    this.#forget(now);
    const hinted = `${key} ${dueAt}`;
    if (this.#younger.has(hinted) || this.#older.has(hinted)) return false;
    this.#younger.add(hinted);
    return true;
  }

  /** Either way: a clock that was put back must not keep what is noted until it has come round again. */
  #forget(now: number): void {
    const since = Math.abs(now - this.#turnedAt);
    if (since < HINT_REST_MS) return;
    this.#older = since < LOST_HINT_MS ? this.#younger : new Set();
    this.#younger = new Set();
    this.#turnedAt = now;
  }
}
