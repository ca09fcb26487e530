import { type IdPrefix, idFloor } from "../../core/ids.ts";
import type { Stretch } from "../../store/retention.ts";

/** How far a walk goes in one turn. */
export interface Stride {
  /** Rows of one look, and of the write that follows. */
  rows: number;
  looks: number;
}

/**
 * A walk over all that is older than a time, by id, so many rows a turn; at the end it begins anew. What it has to leave
 * where it is holds nothing up behind it.
 */
export class Walk {
  readonly #prefix: IdPrefix;
  readonly #stride: Stride;
  #after = "";

  constructor(prefix: IdPrefix, stride: Stride) {
    this.#prefix = prefix;
    this.#stride = stride;
  }

  /**
   * One turn. `treat` gives the rows of a stretch once it has done with them.
   * @param before milliseconds
   * @returns whether it has come to the end
   */
  async turn(
    before: number,
    treat: (stretch: Stretch) => Promise<readonly { id: string }[]>,
  ): Promise<boolean> {
    const { rows: limit, looks } = this.#stride;
    for (let look = 0; look < looks; look++) {
      const rows = await treat({ after: this.#after, below: idFloor(this.#prefix, before), limit });
      this.#after = rows.length < limit ? "" : (rows.at(-1)?.id ?? "");
      if (this.#after === "") return true;
    }
    return false;
  }
}
