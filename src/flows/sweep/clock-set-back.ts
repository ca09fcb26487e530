import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import type { Store } from "../../store/engine/client.ts";
import {
  restartConfigured,
  restartWaits,
  WAITING_TABLES,
  type WaitingTable,
  type WaitCursor,
} from "../../store/messages/restarted-waits.ts";
import { RETIRED_KEY_MS } from "../domains/verify.ts";

/** Rows of one read, which takes about five milliseconds, and reads of one turn. */
export const ROWS_PER_LOOK = 500;
export const LOOKS_PER_TURN = 40;

/**
 * Restarts delays that would last too long after the clock was set back. It may have been set back while no process ran, so
 * this also runs after each start. It works in steps, because there may be millions of rows.
 */
export class ClockSetBack {
  readonly #deps: Store;
  /** Tables still to read; the first one from `#after` on. */
  #tables: readonly WaitingTable[] = [];
  #after: WaitCursor | null = null;
  #configured = false;

  constructor(deps: Store) {
    this.#deps = deps;
  }

  /** Starts over with all tables. */
  begin(): void {
    this.#tables = WAITING_TABLES;
    this.#after = null;
    this.#configured = true;
  }

  /** Runs one turn over the remaining rows. */
  async turn(): Promise<void> {
    const { db, clock } = this.#deps;
    if (this.#configured) await db.write(restartConfigured(clock.now(), RETIRED_KEY_MS));
    this.#configured = false;
    for (let look = 0; look < LOOKS_PER_TURN; look++) {
      const [table, ...others] = this.#tables;
      if (table === undefined) return;
      this.#after = await restartWaits(db, table, this.#after, clock.now(), ROWS_PER_LOOK);
      if (this.#after === null) this.#tables = others;
      // Reads of a file are synchronous, so let other work run between them.
      await yieldToEventLoop();
    }
  }
}
