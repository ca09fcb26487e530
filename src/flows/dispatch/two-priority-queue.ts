import { Fifo } from "../../core/collections.ts";

/** One item in so many is of low priority, so that those never starve. */
export const ROUND_LENGTH = 5;

/** A queue of two priorities. Items of low priority are taken last in each round, and if there is no other item. */
export class TwoPriorityQueue<Item> {
  readonly #high = new Fifo<Item>();
  readonly #low = new Fifo<Item>();
  #taken = 0;

  get size(): number {
    return this.#high.size + this.#low.size;
  }

  add(item: Item, low: boolean): void {
    (low ? this.#low : this.#high).add(item);
  }

  /** Takes the next item and its priority. Returns null if there is none. */
  take(): { item: Item; low: boolean } | null {
    const isLastOfRound = this.#taken === ROUND_LENGTH - 1;
    const low = this.#low.size > 0 && (isLastOfRound || this.#high.size === 0);
    const item = (low ? this.#low : this.#high).take();
    if (item === undefined) return null;
    this.#taken = (this.#taken + 1) % ROUND_LENGTH;
    return { item, low };
  }
}
