import { afterAll, beforeAll, expect, test } from "bun:test";
import { LOOKS_PER_TURN, ClockSetBack, ROWS_PER_LOOK } from "../../src/flows/sweep/clock-set-back.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { around } from "../support/around.ts";

const HOUR = 3_600_000;
/** Rows that a walk reads in one turn. */
const PER_TURN = ROWS_PER_LOOK * LOOKS_PER_TURN;

let api: TestApi;
let now: number;
beforeAll(async () => {
  api = await testApi();
  now = api.clock.now();
  const sender = api.acme.a.id;
  await api.db.write([
    {
      sql: `INSERT INTO webhooks (id, sender_id, url, event_types, secret, created_at, updated_at)
        VALUES ('whk_1', ?, 'https://x.test', '[]', 's', 1, 1)`,
      args: [sender],
    },
    {
      sql: `INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, scheduled_at, created_at)
        SELECT id, ?, 'outbound', 'queued', 'a@b.test', '[]', 's', at, 1
          FROM (SELECT 'msg_row' AS id, NULL AS at UNION ALL SELECT 'msg_later', ?)`,
      args: [sender, now + 2 * HOUR],
    },
  ]);
});
afterAll(() => api.close());

/** Retries of a message, due in an hour, after a try `age` milliseconds ago. If it is negative, in the future. */
const retries = (messageId: string, from: number, count: number, age: number) => ({
  sql: `INSERT INTO recipients (message_id, ord, sender_id, email, domain, kind, status, attempts, due_at, last_event_at)
    WITH RECURSIVE numbers (n) AS (SELECT ?2 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2 + ?3 - 1)
    SELECT ?1, n, 'snd', 'a@b.test', 'b.test', 'to', 'delivery_delayed', 1, ?4, ?5 FROM numbers`,
  args: [messageId, from, count, now + HOUR, now - age],
});

const pushes = (from: number, count: number, age: number) => ({
  sql: `INSERT INTO webhook_deliveries (id, webhook_id, sender_id, type, status, attempts, due_at, last_attempt_at, created_at)
    WITH RECURSIVE numbers (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1 + ?2 - 1)
    SELECT printf('dlv_%08d', n), 'whk_1', 'snd', 'open', 'pending', 1, ?3, ?4, 1 FROM numbers`,
  args: [from, count, now + HOUR, now - age],
});

/** The number of a table's rows that are due at each time, counted from now. */
async function dues(table: string): Promise<Record<string, number>> {
  const rows = await api.db.all<{ wait: number; n: number }>(
    `SELECT due_at - ? AS wait, count(*) AS n FROM ${table} WHERE due_at IS NOT NULL GROUP BY 1 ORDER BY 1`,
    [now],
  );
  return Object.fromEntries(rows.map(({ wait, n }) => [wait, n]));
}

/** The database, with a count of writes that changed rows of a table with waits. */
function counted(): { db: Db; changes: number[] } {
  const changes: number[] = [];
  const db: Db = {
    ...around(api.db),
    async write(statements) {
      const written = await api.db.write(statements);
      for (const [at, { sql }] of statements.entries())
        if (/^UPDATE (recipients|webhook_deliveries)/.test(sql)) changes.push(written[at]?.changes ?? 0);
      return written;
    },
  };
  return { db, changes };
}

test("after the clock was set back every delay restarts, however many there are, in writes of bounded size", async () => {
  const [sound, stale] = [PER_TURN - 10, ROWS_PER_LOOK + 20];
  await api.db.write([
    retries("msg_row", 0, sound, 60_000),
    // Tried in ten minutes, to be tried again fifty minutes later.
    retries("msg_row", sound, stale, -600_000),
    retries("msg_later", 0, 1, -600_000),
    pushes(0, ROWS_PER_LOOK - 10, 60_000),
    pushes(ROWS_PER_LOOK, 20, -600_000),
  ]);
  const { db, changes } = counted();
  const waits = new ClockSetBack({ db, clock: api.clock });
  await waits.turn();
  expect(await dues("recipients")).toEqual({ [HOUR]: sound + stale + 1 });
  waits.begin();
  let turns = 0;
  for (; turns < 10 && (await dues("webhook_deliveries"))[HOUR] !== ROWS_PER_LOOK - 10; turns++)
    await waits.turn();
  expect(turns).toBe(2);
  // Scheduled mail waits for the clock.
  expect(await dues("recipients")).toEqual({ [50 * 60_000]: stale, [HOUR]: sound + 1 });
  expect(await dues("webhook_deliveries")).toEqual({ [50 * 60_000]: 20, [HOUR]: ROWS_PER_LOOK - 10 });
  expect(Math.max(...changes)).toBeLessThanOrEqual(ROWS_PER_LOOK);
  // The scheduled message too: it keeps its time, and its last event is no longer in the future.
  expect(changes.reduce((sum, rows) => sum + rows, 0)).toBe(stale + 1 + 20);
});
