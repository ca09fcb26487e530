import { Fifo } from "../../core/fifo.ts";

/** One turn in so many belongs to those behind, so that they never starve. */
export const TURNS_A_ROUND = 5;

/** Two rows of waiting items: those in front go first, and those behind have the last turn of each round. */
export class Turns<Item> {
  readonly #front = new Fifo<Item>();
  readonly #behind = new Fifo<Item>();
  #turn = 0;

  get size(): number {
    return this.#front.size + this.#behind.size;
  }

  add(item: Item, behind: boolean): void {
    (behind ? this.#behind : this.#front).add(item);
  }

  /** The next item, and whether it comes from behind. */
  take(): { item: Item; behind: boolean } | null {
    const turnOfBehind = this.#turn === TURNS_A_ROUND - 1;
    const behind = this.#behind.size > 0 && (turnOfBehind || this.#front.size === 0);
    const item = (behind ? this.#behind : this.#front).take();
    if (item === undefined) return null;
    this.#turn = (this.#turn + 1) % TURNS_A_ROUND;
    return { item, behind };
  }
}
