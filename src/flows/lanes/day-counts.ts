/** Attempts of this process on a day that the database does not count yet. */
export interface Counts {
  /** Days since 1970, UTC. */
  day: number;
  accepted: number;
  deferred: number;
  refused: number;
}

/** Returns the number of all attempts. */
export function attemptsOf({ accepted, deferred, refused }: Omit<Counts, "day">): number {
  return accepted + deferred + refused;
}

/** Counts attempts by day, so that those before midnight stay the day's that they were made on. */
export class DayCounts {
  /** A day is left once the database counts its attempts, so these are two at most. */
  #days: Counts[] = [];

  add(day: number, what: "accepted" | "deferred" | "refused"): void {
    let counts = this.#days.find((one) => one.day === day);
    if (counts === undefined) {
      counts = { day, accepted: 0, deferred: 0, refused: 0 };
      this.#days.push(counts);
    }
    counts[what]++;
  }

  attemptsOn(day: number): number {
    const counts = this.#days.find((one) => one.day === day);
    return counts === undefined ? 0 : attemptsOf(counts);
  }

  /** Returns what the database does not count yet. */
  list(): readonly Counts[] {
    return this.#days.map((counts) => ({ ...counts }));
  }

  /** Subtracts what the database counts now. */
  subtract(stored: readonly Counts[]): void {
    for (const { day, accepted, deferred, refused } of stored) {
      const counts = this.#days.find((one) => one.day === day);
      if (counts === undefined) continue;
      counts.accepted -= accepted;
      counts.deferred -= deferred;
      counts.refused -= refused;
    }
    this.#days = this.#days.filter((counts) => attemptsOf(counts) > 0);
  }
}
