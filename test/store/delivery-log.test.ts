import { afterAll, beforeAll, describe, expect } from "bun:test";
import { idFloor, newId } from "../../src/core/ids.ts";
import { DAY_MS } from "../../src/core/time/units.ts";
import { webhookDeliveryRoutes } from "../../src/http/routes/webhook-deliveries.ts";
import { openMemoryQueue } from "../../src/queue/memory.ts";
import { type DeliveryFilter, listDeliveries } from "../../src/store/webhooks/delivery-log.ts";
import { MAX_SCANNED, SCAN_STEP } from "../../src/store/matching/steps.ts";
import { insertWebhook } from "../../src/store/webhooks/webhooks.ts";
import { test } from "../support/engine-test.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { manualClock } from "../support/manual-clock.ts";
import { payloadMemory } from "../support/payload-memory.ts";

const NOW = 1_750_000_000_000;
const MESSAGE = newId("msg", NOW);

let api: TestApi;
let mine: string;
beforeAll(async () => {
  const clock = manualClock();
  const queue = openMemoryQueue({ clock, log: { info: () => undefined, warn: () => undefined } });
  api = await testApi({
    routes: ({ db }) => webhookDeliveryRoutes({ db, clock, queue, ...payloadMemory() }),
  });
  mine = api.acme.a.id;
});
afterAll(() => api.close());

async function webhook(id: string, senderId = mine): Promise<void> {
  const made = {
    id,
    senderId,
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
  ]);
}

/** The id of a webhook's `n`-th delivery, one each millisecond. */
const idOf = (n: number) => idFloor("dlv", NOW + n);

/** Successful deliveries, one each millisecond from `from` on, in few writes. */
async function deliveries(webhookId: string, from: number, count: number): Promise<void> {
  const STEP = 500;
  for (let at = from; at < from + count; at += STEP) {
    const ids = Array.from({ length: Math.min(STEP, from + count - at) }, (_, n) => idOf(at + n));
    await api.db.write([
      {
        sql: `INSERT INTO webhook_deliveries (id, webhook_id, sender_id, message_id, type, status, created_at)
          SELECT value, ?, ?, 'msg_other', 'open', 'succeeded', ? FROM json_each(?)`,
        args: [webhookId, mine, NOW, JSON.stringify(ids)],
      },
    ]);
  }
}

const change = (ids: readonly string[], set: string, ...args: (string | number)[]) =>
  api.db.write([
    {
      sql: `UPDATE webhook_deliveries SET ${set} WHERE id IN (SELECT value FROM json_each(?))`,
      args: [...args, JSON.stringify(ids)],
    },
  ]);

/** All pages of a log, with the rows of each. */
async function paged(webhookId: string, filter: DeliveryFilter, rows: number): Promise<string[][]> {
  const pages: string[][] = [];
  let before: string | null = null;
  for (;;) {
    const page = await listDeliveries(api.db, mine, webhookId, filter, before, rows + 1);
    pages.push(page.rows.slice(0, rows).map(({ id }) => id));
    before = page.rows.length > rows ? (page.rows[rows - 1]?.id ?? null) : page.stoppedAt;
    if (before === null) return pages;
  }
}

describe("a log with few matches", () => {
  const COUNT = MAX_SCANNED + 2 * SCAN_STEP;
  /** One on the last page, one at the end of the first, and the newest. */
  const FEW = [3, COUNT - MAX_SCANNED - 1, COUNT - MAX_SCANNED, COUNT - 1];
  const ids = FEW.map(idOf).toReversed();
  beforeAll(async () => {
    await webhook("whk_long");
    await deliveries("whk_long", 0, COUNT);
    await change(FEW.map(idOf), "status = 'failed', message_id = ?", MESSAGE);
  }, 60_000);

  test.each<[string, DeliveryFilter]>([
    ["status", { status: "failed" }],
    ["message", { messageId: MESSAGE }],
    ["both", { status: "failed", messageId: MESSAGE }],
  ])(
    "a log with few matches is read up to a limit for each page, and shows each match once: by %s",
    async (_, filter) => {
      expect(await paged("whk_long", filter, 20)).toEqual([ids.slice(0, 2), ids.slice(2)]);
      expect((await paged("whk_long", filter, 1)).filter((page) => page.length > 0)).toEqual(
        ids.map((id) => [id]),
      );
    },
  );

  test("a log with few matches is not read past the message that is asked for", async () => {
    // Made when the last delivery was. All other deliveries are more than a day older.
    const late = newId("msg", NOW + COUNT + DAY_MS);
    const { rows, stoppedAt } = await listDeliveries(api.db, mine, "whk_long", { messageId: late }, null, 20);
    expect([rows, stoppedAt]).toEqual([[], null]);
  });

  test("a log with few matches shows a delivery that seems older than its message because the clock was set back", async () => {
    await change([idOf(5)], "message_id = ?", newId("msg", NOW + 5 + DAY_MS));
    const [row] = await api.db.all<{ id: string }>(
      "SELECT message_id AS id FROM webhook_deliveries WHERE id = ?",
      [idOf(5)],
    );
    const pages = await paged("whk_long", { messageId: row?.id ?? "" }, 20);
    expect(pages.flat()).toEqual([idOf(5)]);
  });

  test("a log with few matches is visible only to its own project", async () => {
    const other = await listDeliveries(api.db, api.acme.b.id, "whk_long", { status: "failed" }, null, 20);
    expect(other.rows).toEqual([]);
  });
});

describe("GET /v1/webhooks/{id}/deliveries", () => {
  const path = "/v1/webhooks/whk_short/deliveries";
  beforeAll(async () => {
    await webhook("whk_short");
    await deliveries("whk_short", 1_000_000, 9);
    await change(
      [2, 4, 6].map((n) => idOf(1_000_000 + n)),
      "status = 'pending', message_id = ?",
      MESSAGE,
    );
    await change(
      [8].map((n) => idOf(1_000_000 + n)),
      "status = 'failed'",
    );
  });
  const found = async (query: string) => {
    const { status, json } = await api.call("GET", `${path}${query}`);
    return [status, json.data?.map(({ id }: { id: string }) => id), json.nextCursor];
  };
  const id = (n: number) => idOf(1_000_000 + n);

  test.each([
    ["?status=pending", [6, 4, 2]],
    ["?status=failed", [8]],
    [`?messageId=${MESSAGE}`, [6, 4, 2]],
    [`?status=failed&messageId=${MESSAGE}`, []],
    ["?messageId=no-such-id", []],
    ["?status=succeeded&limit=9", [7, 5, 3, 1, 0]],
  ])("%s", async (query, expected) => {
    expect(await found(query)).toEqual([200, expected.map(id), null]);
  });

  test("keeps its position while more rows begin to match, and its cursor is only valid for that filter", async () => {
    const first = await api.call("GET", `${path}?status=pending&limit=2`);
    expect(first.json.data.map((one: { id: string }) => one.id)).toEqual([id(6), id(4)]);
    await change([id(7)], "status = 'pending'");
    const { nextCursor } = first.json;
    expect(await found(`?status=pending&limit=2&cursor=${nextCursor}`)).toEqual([200, [id(2)], null]);
    expect((await found(`?status=failed&cursor=${nextCursor}`))[0]).toBe(400);
    await change([id(7)], "status = 'succeeded'");
  });

  test("?status=delivered is not a status", async () => {
    expect((await found("?status=delivered"))[0]).toBe(422);
  });
});
