import { type Clock, sleep } from "../core/clock.ts";
import { log } from "../log.ts";
import { ConstraintError } from "../store/engine/client.ts";

/** Pauses between tries (milliseconds): doubling from the first to the longest. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/**
 * Tries at most: three days, longer than any disk stays full. What waits is bounded by what may be in hand; a claim given
 * up on is freed as an orphan later, and its mail goes out again.
 */
const MAX_TRIES = 26_000;

/**
 * Makes a write that must not be lost while the process lives: what it records has happened in the world already. A
 * full disk or a database out of reach is waited for.
 */
export async function untilWritten(clock: Clock, write: () => Promise<void>): Promise<void> {
  let pause = FIRST_PAUSE_MS;
  for (let tries = 1; ; tries++) {
    try {
      return await write();
    } catch (error) {
      if (error instanceof ConstraintError || tries === MAX_TRIES) throw error;
      log("store").error("an outcome could not be recorded, trying again", { tries, error: String(error) });
      await sleep(clock, pause);
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }
}
