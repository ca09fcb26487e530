import { Fifo } from "../../core/collections.ts";

/** One in this number of items has low priority, so that those never starve. */
export const ROUND_LENGTH = 5;

/** A queue in which groups take turns. Within a group the first item in is the first out. */
class TurnQueue<Item> {
  readonly #groups = new Map<string, Fifo<Item>>();
  readonly #turns = new Fifo<string>();
  size = 0;

  add(item: Item, group: string): void {
    const known = this.#groups.get(group);
    const items = known ?? new Fifo<Item>();
    if (known === undefined) {
      this.#groups.set(group, items);
      this.#turns.add(group);
    }
    items.add(item);
    this.size++;
  }

  take(): Item | undefined {
    const group = this.#turns.take();
    const items = group === undefined ? undefined : this.#groups.get(group);
    if (group === undefined || items === undefined) return undefined;
    this.size--;
    const item = items.take();
    if (items.size > 0) this.#turns.add(group);
    else this.#groups.delete(group);
    return item;
  }
}

/**
 * A queue of two priorities. Items of low priority are taken last in each round, and if there is no other item. Within a
 * priority groups take turns.
 */
export class TwoPriorityQueue<Item> {
  readonly #high = new TurnQueue<Item>();
  readonly #low = new TurnQueue<Item>();
  readonly #groupOf: (item: Item) => string;
  #taken = 0;

  /** @param groupOf returns the group of an item, which must not change */
  constructor(groupOf: (item: Item) => string = () => "") {
    this.#groupOf = groupOf;
  }

  get size(): number {
    return this.#high.size + this.#low.size;
  }

  add(item: Item, low: boolean): void {
    (low ? this.#low : this.#high).add(item, this.#groupOf(item));
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
