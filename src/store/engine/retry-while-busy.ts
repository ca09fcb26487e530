import { type Clock, sleep } from "../../core/time/clock.ts";
import { log } from "../../log.ts";
import { isBusy } from "../sql/errors.ts";

/** First and longest pause between tries while another process holds the write lock, and the time for all of them, milliseconds. */
const PAUSE_MS = 5;
const MAX_PAUSE_MS = 100;
const GIVE_UP_AFTER_MS = 15_000;

/**
 * Runs `task` again while another process holds the database. The group commit does this for each write; opening a
 * database, and reads during a start, have to be wrapped by their callers.
 */
export async function retryWhileBusy<Value>(clock: Clock, task: () => Promise<Value>): Promise<Value> {
  const giveUpAt = clock.elapsed() + GIVE_UP_AFTER_MS;
  for (let pause = PAUSE_MS; ; pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
    try {
      return await task();
    } catch (error) {
      if (!isBusy(error) || clock.elapsed() > giveUpAt) throw error;
      log("store").debug("database is locked by another process", { pause });
      await sleep(clock, pause);
    }
  }
}
