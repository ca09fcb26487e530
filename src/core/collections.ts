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
