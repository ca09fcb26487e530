/** Pages of one turn: what becomes due in a second and does not fit them is met in the row of all that is due. */
const PAGES_PER_TURN = 4;

/** Brings one page of what is due behind a place, null: from the longest due on; gives its end, null: that of the row. */
type BringPage<Place> = (after: Place | null) => Promise<Place | null>;

/**
 * Goes over the row of all that is due. Each turn looks first at what has become due since the last one, then goes on
 * where that one ended in the row, so that a long row of what waits hides nothing behind it; at its end it starts anew.
 */
export class DueRow<Place> {
  readonly #bring: BringPage<Place>;
  readonly #placeAt: (dueAt: number) => Place;
  #after: Place | null = null;
  /** What was due up to this time has been looked at once. */
  #lookedUntil: number;

  /** @param placeAt the place before all that became due at a time (milliseconds) */
  constructor(bring: BringPage<Place>, placeAt: (dueAt: number) => Place, now: number) {
    this.#bring = bring;
    this.#placeAt = placeAt;
    this.#lookedUntil = now;
  }

  /** One turn. @param now milliseconds */
  async turn(now: number): Promise<void> {
    // A clock that was put back hides nothing until it has come round again.
    this.#lookedUntil = Math.min(this.#lookedUntil, now);
    await this.#pagesBehind(this.#placeAt(this.#lookedUntil));
    this.#lookedUntil = now;
    this.#after = await this.#pagesBehind(this.#after);
  }

  async #pagesBehind(place: Place | null): Promise<Place | null> {
    let after = place;
    for (let page = 0; page < PAGES_PER_TURN; page++) {
      after = await this.#bring(after);
      if (after === null) break;
    }
    return after;
  }
}
