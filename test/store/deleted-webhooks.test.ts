import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  LOG_ROWS_PER_WRITE,
  removeDeletedWebhooks,
  LOG_WRITES_PER_TURN,
} from "../../src/flows/sweep/removals.ts";
import { insertOwnDelivery, listDeliveries } from "../../src/store/webhooks/delivery-log.ts";
import { insertDeliveries, pushTarget } from "../../src/store/webhooks/webhook-deliveries.ts";
import {
  deleteWebhook,
  getWebhook,
  insertWebhook,
  listWebhooks,
  rotateSecret,
  updateWebhook,
} from "../../src/store/webhooks/webhooks.ts";
import { type TestApi, testApi } from "../support/api.ts";

const NOW = 1_750_000_000_000;

let api: TestApi;
let mine: string;
beforeAll(async () => {
  api = await testApi();
  mine = api.acme.a.id;
});
afterAll(() => api.close());

/** A webhook with that many lines in its log. */
async function webhook(id: string, lines: number): Promise<void> {
  const made = {
    id,
    senderId: mine,
    url: "https://hooks.example/in",
    enabled: true,
    dialect: "postrider" as const,
    eventTypes: ["*"],
  };
  await api.db.write([
    insertWebhook(
      { ...made, content: true, disabledReason: null, failingSince: null, createdAt: NOW, updatedAt: NOW },
      "sealed",
    ),
    {
      sql: `INSERT INTO webhook_deliveries (id, webhook_id, sender_id, type, data, status, due_at, created_at)
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2)
        SELECT printf('dlv_%s_%05d', ?1, n), ?1, ?3, 'open', '{}', 'pending', ?4, ?4 FROM numbers WHERE ?2 > 0`,
      args: [id, lines, mine, NOW],
    },
  ]);
}

const linesOf = async (id: string) =>
  (
    await api.db.first<{ n: number }>("SELECT count(*) AS n FROM webhook_deliveries WHERE webhook_id = ?", [
      id,
    ])
  )?.n;
const rowsOf = async (id: string) =>
  (await api.db.all<unknown>("SELECT id FROM webhooks WHERE id = ?", [id])).length;
/** The total of due deliveries, as the counters have it. */
const waiting = async () =>
  (
    await api.db.all<{ webhook_id: string }>(
      "SELECT webhook_id FROM webhook_deliveries WHERE due_at IS NOT NULL",
    )
  ).length;

test("a deleted webhook is gone for clients at once, and its log is removed bit by bit, its row last", async () => {
  const perTurn = LOG_ROWS_PER_WRITE * LOG_WRITES_PER_TURN;
  await webhook("whk_long", perTurn + 1);
  await webhook("whk_other", 3);
  expect(await deleteWebhook(api.db, mine, "whk_long", NOW)).toBe(true);
  expect(await deleteWebhook(api.db, mine, "whk_long", NOW)).toBe(false);
  expect([
    await getWebhook(api.db, mine, "whk_long"),
    await pushTarget(api.db, mine, "whk_long"),
    await updateWebhook(api.db, mine, "whk_long", { enabled: true }, true, NOW),
    (await listWebhooks(api.db, mine, null, 9)).map(({ id }) => id),
  ]).toEqual([null, null, null, ["whk_other"]]);
  expect(await linesOf("whk_long")).toBe(perTurn + 1);
  await removeDeletedWebhooks(api.db);
  expect([await linesOf("whk_long"), await rowsOf("whk_long")]).toEqual([1, 1]);
  await removeDeletedWebhooks(api.db);
  expect([await linesOf("whk_long"), await rowsOf("whk_long")]).toEqual([0, 0]);
  expect([await linesOf("whk_other"), await rowsOf("whk_other"), await waiting()]).toEqual([3, 1, 3]);
  expect((await listDeliveries(api.db, mine, "whk_other", {}, null, 9)).rows).toHaveLength(3);
});

test("a deleted webhook gets no further deliveries, not even those on their way to its log", async () => {
  await webhook("whk_heard", 0);
  await deleteWebhook(api.db, mine, "whk_heard", NOW);
  const event = { id: "evt_1", senderId: mine, messageId: "msg_1", type: "open" as const };
  await api.db.write([
    ...insertDeliveries([{ id: "dlv_late", webhookId: "whk_heard", event }], NOW),
    insertOwnDelivery(mine, "whk_heard", { id: "dlv_sample", type: "open", data: {} }, NOW),
    rotateSecret(mine, "whk_heard", "another", NOW, NOW),
  ]);
  expect(await linesOf("whk_heard")).toBe(0);
  expect(await api.db.all<unknown>("SELECT secret FROM webhooks WHERE id = 'whk_heard'")).toEqual([
    { secret: "sealed" },
  ]);
  await removeDeletedWebhooks(api.db);
  expect(await rowsOf("whk_heard")).toBe(0);
});
