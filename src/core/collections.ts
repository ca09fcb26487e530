/** Items taken before they are cut off the front. A smaller number would copy the rest too often. */
const COMPACT_AFTER = 1024;

/** A queue: first in, first out. Taking from the front costs the same however many wait. */
export class Fifo<Item> {
  #items: Item[] = [];
  #next = 0;

  get size(): number {
    return this.#items.length - this.#next;
  }

  add(item: Item): void {
    this.#items.push(item);
  }

  take(): Item | undefined {
    const item = this.#items[this.#next];
    if (this.#next < this.#items.length) this.#next++;
    if (this.#next === this.#items.length || (this.#next > COMPACT_AFTER && this.#next > this.size)) {
      this.#items = this.#items.slice(this.#next);
      this.#next = 0;
    }
    return item;
  }
}

/** Sets a key's value and makes it the newest. If the map then has more than `most` keys, evicts the oldest. */
export function setBounded<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, most: number): void {
  // A Map iterates in the order of insertion.
  map.delete(key);
  map.set(key, value);
  if (map.size <= most) return;
  const oldest = map.keys().next();
  if (oldest.done !== true) map.delete(oldest.value);
}

/**
 * A map with a maximum size. Beyond it, the value of the lowest rank is evicted, and of those the one that was set longest
 * ago. Ranks count from 0, and may change at any time.
 */
export class RankedMap<Key, Value> {
  readonly #byRank: readonly Map<Key, Value>[];
  readonly #rankOf: (value: Value) => number;
  readonly #most: number;

  constructor(ranks: number, rankOf: (value: Value) => number, most: number) {
    this.#byRank = Array.from({ length: ranks }, () => new Map());
    this.#rankOf = rankOf;
    this.#most = most;
  }

  get(key: Key): Value | undefined {
    return this.#byRank.find((values) => values.has(key))?.get(key);
  }

  *values(): Generator<Value> {
    for (const values of this.#byRank) yield* values.values();
  }

  /** Sets a key's value and makes it the newest of its rank. */
  set(key: Key, value: Value): void {
    for (const values of this.#byRank) values.delete(key);
    this.#byRank[this.#rankOf(value)]?.set(key, value);
    const size = this.#byRank.reduce((sum, values) => sum + values.size, 0);
    if (size > this.#most) this.#evict();
  }

  #evict(): void {
    for (const [rank, values] of this.#byRank.entries())
      for (const [key, value] of values) {
        values.delete(key);
        const now = this.#rankOf(value);
        if (now <= rank) return;
        this.#byRank[now]?.set(key, value);
      }
  }
}
