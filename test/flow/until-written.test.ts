import { expect, test } from "bun:test";
import { retryWrite } from "../../src/store/engine/retry-write.ts";
import { manualClock } from "../support/manual-clock.ts";

test("an outcome is still written after the disk has been full for a quarter of an hour", async () => {
  const clock = manualClock();
  const until = clock.now() + 15 * 60_000;
  let end = "";
  retryWrite(clock, async () => {
    if (clock.now() < until) throw new Error("SQLITE_FULL: database or disk is full");
  }).then(
    () => {
      end = "written";
    },
    () => {
      end = `forgotten after ${Math.round((clock.now() - until) / 1000) + 900} s`;
    },
  );
  for (let turn = 0; end === "" && turn < 2000; turn++) {
    clock.advance(1000);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  expect(end).toBe("written");
});
