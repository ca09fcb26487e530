import { type Clock, sleep } from "../../core/time/clock.ts";
import { log } from "../../log.ts";
import { ClosedError, ConstraintError } from "../sql/errors.ts";

/** Pauses between attempts, milliseconds. Each is twice the one before, up to the longest. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/**
 * Attempts before giving up: three days, longer than a disk stays full. If a write is given up, its claim is later freed as
 * an orphan, and the message is sent again.
 */
const MAX_TRIES = 26_000;

/**
 * Repeats a write until it succeeds, because it records something that already happened, such as a peer's answer. Waits if
 * the disk is full or the database cannot be reached.
 * @throws ClosedError once this process has closed the database: the next one frees the claim as an orphan
 */
export async function retryWrite(clock: Clock, write: () => Promise<void>): Promise<void> {
  let pause = FIRST_PAUSE_MS;
  for (let tries = 1; ; tries++) {
    try {
      return await write();
    } catch (error) {
      if (isFinal(error) || tries === MAX_TRIES) throw error;
      log("store").error("an outcome could not be recorded, trying again", { tries, error: String(error) });
      await sleep(clock, pause);
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }
}

function isFinal(error: unknown): boolean {
  return error instanceof ConstraintError || error instanceof ClosedError;
}
