/** Pages that a turn reads of the newly due rows, and of the older ones. */
const PAGES_PER_TURN = 4;

/**
 * Handles the page of due rows after a position; null starts with the longest due. Returns the position of its last row, or
 * null at the end.
 */
type HandlePage<Position> = (after: Position | null) => Promise<Position | null>;

/** Walks through all due rows page by page. At the end the walk starts over. */
export class DueWalk<Position> {
  readonly #handlePage: HandlePage<Position>;
  #after: Position | null = null;

  constructor(handlePage: HandlePage<Position>) {
    this.#handlePage = handlePage;
  }

  async turn(): Promise<void> {
    this.#after = await pagesAfter(this.#handlePage, this.#after);
  }
}

/** Reads what became due since its last turn, so that it does not wait for a long list of older rows. */
export class NewlyDue<Position> {
  readonly #handlePage: HandlePage<Position>;
  readonly #positionAt: (dueAt: number) => Position;
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
    await pagesAfter(this.#handlePage, this.#positionAt(this.#readUntil));
    this.#readUntil = now;
  }
}

async function pagesAfter<Position>(
  handlePage: HandlePage<Position>,
  position: Position | null,
): Promise<Position | null> {
  let after = position;
  for (let page = 0; page < PAGES_PER_TURN; page++) {
    after = await handlePage(after);
    if (after === null) break;
  }
  return after;
}
