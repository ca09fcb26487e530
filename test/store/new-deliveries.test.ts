import { afterAll, beforeAll, expect, test } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import { withValues } from "../../src/store/sql/deferred-content.ts";
import { insertProject } from "../../src/store/projects/projects.ts";
import { insertDeliveries, type NewDelivery } from "../../src/store/webhooks/webhook-deliveries.ts";
import { testSender } from "../support/api.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

const NOW = 1_750_000_000_000;
const sender = testSender("acc_1", "home", NOW);
let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
  const account = {
    sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_1', 'a', 'o@a.test', 0)",
    args: [],
  };
  const webhook = (id: string) => ({
    sql: `INSERT INTO webhooks (id, sender_id, url, event_types, secret, created_at, updated_at)
      VALUES (?, ?, 'https://hook.test', '[]', 's', 0, 0)`,
    args: [id, sender.id],
  });
  await database.db.write([account, insertProject(sender), webhook("whk_one"), webhook("whk_two")]);
});
afterAll(() => database.remove());

/** A delivery of a separate event to each webhook. */
function deliveries(...webhookIds: string[]): NewDelivery[] {
  return webhookIds.map((webhookId) => ({
    id: newId("dlv", NOW),
    webhookId,
    event: {
      id: newId("evt", NOW),
      senderId: sender.id,
      messageId: newId("msg", NOW),
      type: "delivery",
      email: null,
      data: {},
      createdAt: NOW,
    },
  }));
}

async function stored(...args: Parameters<typeof insertDeliveries>): Promise<string[]> {
  await database.db.write(insertDeliveries(...args));
  const ids = new Set(args[0].map(({ id }) => id));
  const rows = await database.db.all<{ id: string; webhook_id: string }>(
    "SELECT id, webhook_id FROM webhook_deliveries ORDER BY id",
  );
  return rows.filter(({ id }) => ids.has(id)).map((row) => row.webhook_id);
}

test("a webhook deleted since it was read gets no delivery, and the others get theirs", async () => {
  expect(await stored(deliveries("whk_gone"), NOW)).toEqual([]);
  expect(await stored(deliveries("whk_one", "whk_gone", "whk_two"), NOW)).toEqual(["whk_one", "whk_two"]);
});

test("only the webhooks that get a delivery are read", async () => {
  for (const { sql, args } of withValues(insertDeliveries(deliveries("whk_one", "whk_two"), NOW))) {
    const plan = await database.db.all<{ detail: string }>(
      `EXPLAIN QUERY PLAN ${sql.slice(sql.indexOf("SELECT"))}`,
      args,
    );
    const steps = plan.map(({ detail }) => detail).filter((detail) => detail.includes(" webhooks "));
    expect(steps).toEqual([expect.stringMatching(/^SEARCH webhooks USING .*\(id=\?\)$/)]);
  }
});

test("a guard lets all of them take effect, or none", async () => {
  const guard = (senderId: string) => ({
    sql: "EXISTS (SELECT 1 FROM senders WHERE id = ?)",
    args: [senderId],
  });
  const both = ["whk_one", "whk_two"];
  expect(await stored(deliveries(...both), NOW, guard("snd_none"))).toEqual([]);
  expect(await stored(deliveries(...both), NOW, guard(sender.id))).toEqual(both);
});

test("more deliveries than one statement stores are all stored", async () => {
  const many = Array.from({ length: 501 }, () => "whk_one");
  expect(await stored(deliveries(...many), NOW)).toEqual(many);
});
