import { type Clock, sleep } from "../../core/clock.ts";
import { log } from "../../log.ts";
import { isBusy } from "./engine.ts";

/** Another process may hold the write lock of a shared file: how often and how long we ask again (milliseconds). */
const BUSY_PAUSE_MS = 5;
const BUSY_PAUSE_MAX_MS = 100;
const BUSY_GIVE_UP_MS = 15_000;

/**
 * Runs `task` again while another process holds the database. The group commit waits so for each write; opening, and
 * reads at a start, go past it and are to be wrapped.
 */
export async function untilFree<Value>(clock: Clock, task: () => Promise<Value>): Promise<Value> {
  let giveUpAt = Infinity;
  for (let pause = BUSY_PAUSE_MS; ; pause = Math.min(pause * 2, BUSY_PAUSE_MAX_MS)) {
    // A clock that was put back lets nobody wait until it has come round again.
    giveUpAt = Math.min(giveUpAt, clock.now() + BUSY_GIVE_UP_MS);
    try {
      return await task();
    } catch (error) {
      if (!isBusy(error) || clock.now() > giveUpAt) throw error;
      log("store").debug("database is locked by another process", { pause });
      await sleep(clock, pause);
    }
  }
}
