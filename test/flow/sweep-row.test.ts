import { LOST_HINT_MS } from "../../src/flows/sweep/recent-hints.ts";
import { afterEach, describe, expect, test } from "bun:test";
import { Sweep } from "../../src/flows/sweep/sweep.ts";
import type { Job, Queue, QueueName } from "../../src/queue/port.ts";
import { manualClock } from "../support/manual-clock.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

let service: TestService;
afterEach(() => service.stop());

const DUE_ROWS = 9_000;
const GIVE_UP_MS = 72 * 3_600_000;

/** A sweep over due recipients that are never delivered, and the rows that it hints in each turn. */
async function longRow() {
  service = await startService({ ROLES: "api" });
  await verifiedDomain(service, "sender.test");
  const body = { from: { email: "a@sender.test" }, to: [{ email: "a@in.test" }], subject: "Hi", text: "x" };
  await service.call("POST", "/v1/emails", body);
  const { db } = service.app;
  const clock = manualClock(Date.now() + 30_000);
  const addRows = (from: number, count: number, attempts: number, dueAt: number) =>
    db.write([
      {
        sql: `WITH RECURSIVE k (n) AS (SELECT ? UNION ALL SELECT n + 1 FROM k WHERE n + 1 < ?)
          INSERT INTO recipients (message_id, ord, sender_id, email, domain, kind, status, attempts, due_at)
          SELECT message_id, k.n, sender_id, email, domain, kind, 'queued', ?, ? FROM recipients, k WHERE ord = 0`,
        args: [from, from + count, attempts, dueAt],
      },
    ]);
  /** Deliveries to a webhook, by number as recipients are. */
  const addPushes = (webhookId: string, from: number, count: number, dueAt: number) =>
    db.write([
      {
        sql: `WITH RECURSIVE k (n) AS (SELECT ? UNION ALL SELECT n + 1 FROM k WHERE n + 1 < ?)
          INSERT INTO webhook_deliveries (id, webhook_id, sender_id, type, status, due_at, created_at)
          SELECT 'dlv.' || k.n, ?, sender_id, 'sent', 'pending', ?, 0 FROM recipients, k WHERE ord = 0`,
        args: [from, from + count, webhookId, dueAt],
      },
    ]);
  const brought: { name: QueueName; ord: number }[] = [];
  const offered: { name: QueueName; ord: number }[] = [];
  const ordOf = ({ key }: Job) => Number(key.split(".")[1]);
  const queue: Queue = {
    async add(name, jobs) {
      for (const job of jobs) brought.push({ name, ord: ordOf(job) });
    },
    work() {},
    async check() {},
    async close() {},
  };
  const sweepWanting = (wanted: (name: QueueName, job: Job) => boolean) =>
    new Sweep(
      { db, clock, queue, giveUpMs: GIVE_UP_MS },
      {
        wants: wanted,
        offer: (name, job) => void offered.push({ name, ord: ordOf(job) }),
      },
    );
  const turn = async (sweep: Sweep) => {
    brought.length = 0;
    await sweep.turn();
    return [...brought];
  };
  return { clock, addRows, addPushes, sweepWanting, turn, offered };
}

async function webhook(url: string): Promise<string> {
  const body = { url, eventTypes: ["*"] };
  return (await service.call("POST", "/v1/webhooks", body)).body.id;
}

test("a newly due row is hinted in the next turn, however many rows were due before it", async () => {
  const { clock, addRows, sweepWanting, turn } = await longRow();
  await addRows(1, DUE_ROWS, 0, clock.now() - 1_000);
  const sweep = sweepWanting(() => true);
  expect((await turn(sweep)).length).toBeLessThan(DUE_ROWS);
  await addRows(DUE_ROWS + 1, 1, 3, clock.now() + 500);
  clock.advance(1_000);
  expect(await turn(sweep)).toContainEqual({ name: "retry", ord: DUE_ROWS + 1 });
});

test("a newly due push is hinted in the next turn, however many wait for another webhook", async () => {
  const { clock, addPushes, sweepWanting, turn } = await longRow();
  const [dead, alive] = [await webhook("https://dead.test/"), await webhook("https://alive.test/")];
  await addPushes(dead, 1, DUE_ROWS, clock.now() - 1_000);
  const sweep = sweepWanting((name) => name === "push");
  expect((await turn(sweep)).length).toBeLessThan(DUE_ROWS);
  await addPushes(alive, DUE_ROWS + 1, 1, clock.now() + 500);
  clock.advance(1_000);
  expect(await turn(sweep)).toContainEqual({ name: "push", ord: DUE_ROWS + 1 });
});

test("all due rows are visited in a few turns, and then again", async () => {
  const { clock, addRows, sweepWanting, turn } = await longRow();
  await addRows(1, DUE_ROWS, 0, clock.now() - 1_000);
  const sweep = sweepWanting(() => true);
  const met = new Set<number>();
  for (let turns = 0; turns < 3; turns++) {
    for (const { name, ord } of await turn(sweep)) {
      expect(name).toBe("transmit");
      met.add(ord);
    }
    clock.advance(1_000);
  }
  expect(met.size).toBe(DUE_ROWS + 1);
  clock.advance(LOST_HINT_MS);
  expect((await turn(sweep)).length).toBeGreaterThan(0);
});

test("a hinted row is not hinted again for some seconds unless it has become due again, because it may wait in another process", async () => {
  const { clock, addRows, sweepWanting, turn } = await longRow();
  await addRows(1, 2, 1, clock.now() - 1_000);
  const sweep = sweepWanting((_, job) => !job.key.endsWith(".0"));
  const both = [1, 2].map((ord) => ({ name: "retry" as const, ord }));
  expect(await turn(sweep)).toEqual(both);
  clock.advance(1_000);
  expect(await turn(sweep)).toEqual([]);
  await service.app.db.write([
    { sql: "UPDATE recipients SET due_at = ? WHERE ord = 2", args: [clock.now() - 1] },
  ]);
  expect(await turn(sweep)).toEqual([{ name: "retry", ord: 2 }]);
  clock.advance(LOST_HINT_MS);
  expect(await turn(sweep)).toEqual(both);
});

test("rows that this process already has, or has no room for, are not added to the queue", async () => {
  const { clock, addRows, sweepWanting, turn } = await longRow();
  await addRows(1, 10, 0, clock.now() - 1_000);
  const sweep = sweepWanting((_, { key }) => key.endsWith(".7"));
  expect(await turn(sweep)).toEqual([{ name: "transmit", ord: 7 }]);
});

test("a row that has been due for a minute is handled by this process itself, because the queue may have lost it", async () => {
  const { clock, addRows, sweepWanting, turn, offered } = await longRow();
  const patience = 60_000;
  await addRows(1, 1, 0, clock.now() - patience - 1);
  await addRows(2, 1, 4, clock.now() - patience - 1);
  await addRows(3, 1, 0, clock.now() - patience);
  const brought = await turn(sweepWanting((_, job) => !job.key.endsWith(".0")));
  expect(brought).toEqual([{ name: "transmit", ord: 3 }]);
  expect(offered).toEqual([
    { name: "transmit", ord: 1 },
    { name: "retry", ord: 2 },
  ]);
});

describe("held mail", () => {
  const HELD = 600;
  const HOLD_MS = 120_000;

  /** The project's mail, held for a reason, and a sweep with room for any row. */
  async function heldRow(reason: string) {
    const row = await longRow();
    await row.addRows(1, HELD, 0, row.clock.now() - 1_000);
    await change("UPDATE recipients SET reason = ? WHERE ord > 0", reason);
    return { ...row, sweep: row.sweepWanting((_, { key }) => !key.endsWith(".0")) };
  }
  const change = (sql: string, ...args: (string | number)[]) => service.app.db.write([{ sql, args }]);
  const dueTimes = () =>
    service.app.db.all<{ due_at: number; n: number }>(
      "SELECT due_at, count(*) AS n FROM recipients WHERE ord > 0 GROUP BY due_at ORDER BY due_at",
    );

  test.each([
    ["sender_suspended", "UPDATE senders SET suspended_at = 1", "UPDATE senders SET suspended_at = NULL"],
    [
      "domain_not_verified",
      "UPDATE domains SET status = 'pending'",
      "UPDATE domains SET status = 'verified'",
    ],
  ])(
    "mail held for %s is put off together, and not claimed until that has ended",
    async (reason, begin, end) => {
      const { clock, turn, sweep } = await heldRow(reason);
      await change(begin);
      for (let round = 0; round < 2; round++) {
        expect(await turn(sweep)).toEqual([]);
        expect(await dueTimes()).toEqual([{ due_at: clock.now() + HOLD_MS, n: HELD }]);
        clock.advance(HOLD_MS);
      }
      await change(end);
      expect(await turn(sweep)).toHaveLength(HELD);
    },
  );

  test("held mail that has waited long enough, has another reason by now, or is claimed is left to its worker", async () => {
    const { clock, turn, sweep } = await heldRow("sender_suspended");
    await change("UPDATE senders SET suspended_at = 1");
    await change("UPDATE recipients SET last_event_at = ? WHERE ord = 7", clock.now() - GIVE_UP_MS);
    await change("UPDATE recipients SET last_event_at = ? WHERE ord = 8", clock.now() - GIVE_UP_MS + 1);
    await change("UPDATE recipients SET reason = 'domain_not_verified' WHERE ord = 9");
    await change("UPDATE recipients SET claimed_by = 'ins_other' WHERE ord = 10");
    expect((await turn(sweep)).map(({ ord }) => ord)).toEqual([7, 9, 10]);
  });
});
