import { type IdPrefix, type IdRange, idFloor } from "../../core/ids.ts";

/** The work of one turn of a walk. */
export interface WalkLimits {
  /** Rows of a page, and of the write that follows. */
  rows: number;
  pages: number;
}

/**
 * Walks by id through all rows older than a time, some pages per turn. At the end it starts over. Rows that must stay do not
 * stop it.
 */
export class Walk {
  readonly #prefix: IdPrefix;
  readonly #limits: WalkLimits;
  #after = "";

  constructor(prefix: IdPrefix, limits: WalkLimits) {
    this.#prefix = prefix;
    this.#limits = limits;
  }

  /**
   * Runs one turn.
   * @param treat handles a page, and returns its rows
   * @param before milliseconds
   * @returns true if it reached the end
   */
  async turn(
    before: number,
    treat: (range: IdRange) => Promise<readonly { id: string }[]>,
  ): Promise<boolean> {
    const { rows: limit, pages } = this.#limits;
    for (let page = 0; page < pages; page++) {
      const rows = await treat({ after: this.#after, below: idFloor(this.#prefix, before), limit });
      this.#after = rows.length < limit ? "" : (rows.at(-1)?.id ?? "");
      if (this.#after === "") return true;
    }
    return false;
  }
}
