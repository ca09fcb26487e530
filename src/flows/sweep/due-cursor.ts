/** Pages that a turn reads of the newly due rows, and of the older ones. */
const PAGES_PER_TURN = 4;

/**
 * Handles the page of due rows after a position; null starts with the longest due. Returns the position of its last row, or
 * null at the end.
 */
type HandlePage<Position> = (after: Position | null) => Promise<Position | null>;

/**
 * Walks through all due rows. Each turn first reads what became due since the last turn, then continues where that turn
 * ended. So newly due rows do not wait for a long list of older ones. At the end the walk starts over.
 */
export class DueCursor<Position> {
  readonly #handlePage: HandlePage<Position>;
  readonly #positionAt: (dueAt: number) => Position;
  #after: Position | null = null;
  /** Rows due up to this time were read once. */
  #readUntil: number;

  /** @param positionAt returns the position before all rows that became due at a time, milliseconds */
  constructor(handlePage: HandlePage<Position>, positionAt: (dueAt: number) => Position, now: number) {
    this.#handlePage = handlePage;
    this.#positionAt = positionAt;
    this.#readUntil = now;
  }

  /** Runs one turn. `now` is in milliseconds. */
  async turn(now: number): Promise<void> {
    // If the clock was set back, read from the new time on.
    this.#readUntil = Math.min(this.#readUntil, now);
    await this.#pagesAfter(this.#positionAt(this.#readUntil));
    this.#readUntil = now;
    this.#after = await this.#pagesAfter(this.#after);
  }

  async #pagesAfter(position: Position | null): Promise<Position | null> {
    let after = position;
    for (let page = 0; page < PAGES_PER_TURN; page++) {
      after = await this.#handlePage(after);
      if (after === null) break;
    }
    return after;
  }
}
