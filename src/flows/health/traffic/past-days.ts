/** Days that are read at once. Each takes milliseconds with a thousand projects, which must not add up on the event loop. */
const DAYS_AT_ONCE = 6;

/**
 * Returns a reader of the figures of the last `days` days, the oldest first. It keeps those of finished days, because they no longer change, and
 * health asks every ten seconds. @param read reads a day, which counts from 1970, UTC
 */
export function lastDays<Figures>(
  days: number,
  read: (day: number) => Promise<Figures>,
): (today: number) => Promise<Figures[]> {
  let kept = new Map<number, Figures>();
  return async (today) => {
    const found = new Map<number, Figures>();
    for (let from = today - days + 1; from <= today; from += DAYS_AT_ONCE) {
      const some = Array.from({ length: Math.min(DAYS_AT_ONCE, today - from + 1) }, (_, at) => from + at);
      const figures = await Promise.all(some.map((day) => kept.get(day) ?? read(day)));
      for (const [at, one] of figures.entries()) found.set(from + at, one);
    }
    kept = new Map(found);
    kept.delete(today);
    return [...found.values()];
  };
}
