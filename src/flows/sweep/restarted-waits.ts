import type { Clock } from "../../core/clock.ts";
import { turn } from "../../core/turn.ts";
import type { Db } from "../../store/engine/client.ts";
import {
  restartConfigured,
  restartSome,
  WAITING_TABLES,
  type WaitingTable,
  type WaitPlace,
} from "../../store/waits.ts";
import { RETIRED_KEY_MS } from "../verify/verify.ts";

/** Rows looked at in one go, some five milliseconds, and how often in one turn. */
export const ROWS_PER_LOOK = 500;
export const LOOKS_PER_TURN = 40;

/**
 * Sees to what a clock that was put back would leave waiting. Whether it was while no process ran nobody knows, so all
 * that waits is looked at after each start: bit by bit, since that may be millions of rows.
 */
export class RestartedWaits {
  readonly #deps: { db: Db; clock: Clock };
  /** Tables still to be walked through, the first of them from behind the place on. */
  #tables: readonly WaitingTable[] = [];
  #after: WaitPlace | null = null;
  #configured = false;

  constructor(deps: { db: Db; clock: Clock }) {
    this.#deps = deps;
  }

  /** Begins at the beginning, whatever has been looked at before. */
  begin(): void {
    this.#tables = WAITING_TABLES;
    this.#after = null;
    this.#configured = true;
  }

  /** Goes on with what is left. */
  async turn(): Promise<void> {
    const { db, clock } = this.#deps;
    if (this.#configured) await db.write(restartConfigured(clock.now(), RETIRED_KEY_MS));
    this.#configured = false;
    for (let look = 0; look < LOOKS_PER_TURN; look++) {
      const [table, ...others] = this.#tables;
      if (table === undefined) return;
      this.#after = await restartSome(db, table, this.#after, clock.now(), ROWS_PER_LOOK);
      if (this.#after === null) this.#tables = others;
      // Reads of a file are synchronous: without this the looks of one turn would hold everybody up together.
      await turn();
    }
  }
}
