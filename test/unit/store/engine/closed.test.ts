import { expect, test } from "bun:test";
import { systemClock } from "../../../../src/clock.ts";
import { overEngine } from "../../../../src/store/engine/client.ts";

test("a closed database refreshes no reads and refuses requests", async () => {
  let refreshed = 0;
  const db = overEngine(
    {
      all: async () => [],
      first: async () => null,
      batch: async (statements) => statements.map(() => ({ rows: [], changes: 1 })),
      close: async () => undefined,
      refreshReads: () => void refreshed++,
    },
    systemClock,
  );
  db.refreshReads();
  await db.close();
  db.refreshReads();
  expect(refreshed).toBe(1);
  for (const request of [db.all("x"), db.first("x"), db.write([{ sql: "x", args: [] }])])
    await expect(request).rejects.toThrow("closed");
});
