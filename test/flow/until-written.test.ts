import { expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { openDb } from "../../src/store/engine/client.ts";
import { retryWrite } from "../../src/store/engine/retry-write.ts";
import { newFolder } from "../support/folder.ts";
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

test("an outcome is tried once if the process has closed its database", async () => {
  const url = `file:${newFolder("closed")}/postrider.db`;
  const db = await openDb(systemClock, { url, authToken: null, syncUrl: null });
  await db.close();
  let tries = 0;
  const recorded = retryWrite(manualClock(), async () => {
    tries++;
    await db.write([{ sql: "SELECT 1", args: [] }]);
  });
  await expect(recorded).rejects.toThrow("the database is closed");
  expect(tries).toBe(1);
});
