/** Items taken before the taken ones are cut off the front; fewer would copy the rest too often. */
const COMPACT_AFTER = 1024;

/** First in, first out; taking from the front costs the same however many wait. */
export class Fifo<Item> {
  #items: Item[] = [];
  #next = 0;

  get size(): number {
    return this.#items.length - this.#next;
  }

  /** What is taken next. */
  get first(): Item | undefined {
    return this.#items[this.#next];
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
