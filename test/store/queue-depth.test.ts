import { afterEach, beforeEach, expect, test } from "bun:test";
import { MAX_COUNTED, queueDepths } from "../../src/store/messages/queue-depth.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { reason } from "../support/reason.ts";

const NOW = 1_750_000_000_000;

let database: TestDatabase;
beforeEach(async () => {
  database = await testDatabase();
  const id = "x";
  await database.db.write([
    {
      sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES (?, 'a', 'o@x.test', 1)",
      args: [id],
    },
    {
      sql: `INSERT INTO senders (id, account_id, external_id, name, plan, trust_tier, created_at)
        VALUES (?, ?, 'e', 'n', 'p', 't', 1)`,
      args: [id, id],
    },
    {
      sql: `INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, created_at)
        VALUES (?, ?, 'outbound', 'queued', 'a@x.test', '[]', '', 1)`,
      args: [id, id],
    },
    {
      sql: `INSERT INTO webhooks (id, sender_id, url, event_types, secret, created_at, updated_at)
        VALUES (?, ?, '', '[]', '', 1, 1)`,
      args: [id, id],
    },
  ]);
});
afterEach(() => database.remove());

type Row = [status: string, dueAt: number | null];

/** Stores that many recipients of each kind, in one write. */
async function recipients(rows: readonly Row[], copies = 1): Promise<void> {
  const all = Array.from({ length: copies }, () => rows).flat();
  await database.db.write([
    {
      sql: `INSERT INTO recipients (message_id, ord, sender_id, email, domain, kind, status, due_at)
        SELECT 'x', key, 'x', 'b@x.test', 'x.test', 'to', value->>0, value->>1 FROM json_each(?)`,
      args: [JSON.stringify(all)],
    },
  ]);
}

async function deliveries(dueAts: readonly (number | null)[]): Promise<void> {
  await database.db.write(
    dueAts.map((dueAt, at) => ({
      sql: `INSERT INTO webhook_deliveries (id, webhook_id, sender_id, type, status, due_at, created_at)
        VALUES (?, 'x', 'x', 'delivery', 'pending', ?, 1)`,
      args: [`dlv_${at}`, dueAt],
    })),
  );
}

async function fanOuts(notes: number): Promise<void> {
  await database.db.write(
    Array.from({ length: notes }, (_, at) => ({
      sql: `INSERT INTO fan_outs (sender_id, id, first_message, last_message, webhooks, events)
        VALUES ('x', ?, 'x', 'x', '[]', '[]')`,
      args: [`evt_${at}`],
    })),
  );
}

test("due, delayed and scheduled recipients are counted apart, and claimed or final ones are not counted", async () => {
  await recipients([
    ...([
      ["queued", NOW - 5000],
      ["queued", NOW],
      ["delivery_delayed", NOW - 10],
    ] as Row[]),
    ...([
      ["delivery_delayed", NOW + 1],
      ["accepted", NOW + 60_000],
      ["sending", null],
    ] as Row[]),
    ["delivered", null],
  ]);
  await deliveries([NOW - 700, NOW + 1, NOW + 2, null]);
  await fanOuts(2);
  expect(await queueDepths(database.db, NOW)).toEqual({
    recipients: { due: 3, later: 1, dueSince: NOW - 5000 },
    deliveries: { due: 1, later: 2, dueSince: NOW - 700 },
    scheduled: 1,
    fanOuts: 2,
  });
});

test("empty queues have nothing due", async () => {
  const empty = { due: 0, later: 0, dueSince: null };
  expect(await queueDepths(database.db, NOW)).toEqual({
    recipients: empty,
    deliveries: empty,
    scheduled: 0,
    fanOuts: 0,
  });
});

test("counting stops at a limit for each kind", async () => {
  await recipients([["queued", NOW]], MAX_COUNTED + 1);
  expect((await queueDepths(database.db, NOW)).recipients.due).toBe(MAX_COUNTED);
});

test("each part reads an index, whatever the tables hold", async () => {
  let sql = "";
  const first = async (text: string): Promise<null> => {
    sql = text;
    return null;
  };
  expect(String(await reason(queueDepths({ ...database.db, first }, NOW)))).toContain("none");
  const plan = await database.db.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, [NOW, MAX_COUNTED]);
  const steps = plan
    .map(({ detail }) => detail)
    .filter((detail) => /recipients|webhook_deliveries/.test(detail));
  expect(steps.length).toBe(7);
  for (const step of steps)
    expect(step).toMatch(
      /USING (?:COVERING )?INDEX (?:recipients_due|recipients_scheduled|webhook_deliveries_due)/,
    );
});
