import { type Clock, sleep } from "../../core/clock.ts";
import { log } from "../../log.ts";
import { errorCode } from "./engine.ts";

/** How often and how long we ask again where another process holds the database (milliseconds). */
const BUSY_PAUSE_MS = 20;
const BUSY_GIVE_UP_MS = 15_000;

/**
 * Runs `task` again while another process holds the database. The group commit does so for writes; opening, and the
 * ledger of migrations, go past it.
 */
export async function untilFree<Value>(clock: Clock, task: () => Promise<Value>): Promise<Value> {
  let giveUpAt = Infinity;
  for (;;) {
    // A clock that was put back lets nobody wait until it has come round again.
    giveUpAt = Math.min(giveUpAt, clock.now() + BUSY_GIVE_UP_MS);
    try {
      return await task();
    } catch (error) {
      if (!/^SQLITE_(?:BUSY|LOCKED)/.test(errorCode(error)) || clock.now() > giveUpAt) throw error;
      log("store").debug("database is locked by another process", { pause: BUSY_PAUSE_MS });
      await sleep(clock, BUSY_PAUSE_MS);
    }
  }
}
