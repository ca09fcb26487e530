import { expect, test } from "bun:test";
import { retryWhileBusy } from "../../../../src/store/engine/retry-while-busy.ts";
import { manualClock } from "../../../support/manual-clock.ts";

const FIRST_PAUSE_MS = 5;
const GIVE_UP_AFTER_MS = 15_000;
const failure = (code: string) => Object.assign(new Error("failed"), { code });

/** Fails each try. The first one takes `ms`. Returns the number of tries. */
async function triesOf(error: Error, ms: number): Promise<number> {
  const clock = manualClock();
  let tries = 0;
  const ended = retryWhileBusy(clock, async () => {
    if (tries++ === 0) clock.advance(ms);
    throw error;
  }).catch((thrown: unknown) => thrown);
  void clock.armed(FIRST_PAUSE_MS).then(() => clock.advance(FIRST_PAUSE_MS));
  expect(await ended).toBe(error);
  return tries;
}

test("a locked database is tried again after exactly 15 seconds, and not a millisecond later", async () => {
  const busy = failure("SQLITE_BUSY");
  expect([await triesOf(busy, GIVE_UP_AFTER_MS), await triesOf(busy, GIVE_UP_AFTER_MS + 1)]).toEqual([2, 1]);
});

test("a failure that is no lock is not tried again", async () => {
  expect(await triesOf(failure("SQLITE_CORRUPT"), 0)).toBe(1);
});
