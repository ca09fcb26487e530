import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { deleteInstance, insertInstance } from "../../src/store/installation/instances.ts";
import { insertProject } from "../../src/store/projects/projects.ts";
import {
  claimDelivery,
  type DueDelivery,
  delayFirstAttempt,
  dueDeliveries,
  freeDeliveries,
  freeDeliveryClaims,
} from "../../src/store/webhooks/webhook-deliveries.ts";
import { testSender } from "../support/api.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

const NOW = 1_750_000_000_000;
const sender = testSender("acc_1", "shop", NOW);
let database: TestDatabase;

beforeEach(async () => {
  database = await testDatabase();
  await database.db.write([
    {
      sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_1', 'a', 'o@x.test', 1)",
      args: [],
    },
    insertProject(sender),
    {
      sql: `INSERT INTO webhooks (id, sender_id, url, event_types, secret, created_at, updated_at)
        VALUES ('whk_1', ?, 'https://hook.test', '["*"]', 's', 1, 1)`,
      args: [sender.id],
    },
    ...["ins_1", "ins_2"].map((id) =>
      insertInstance({ id, host: "here", pid: 1, heartbeatAt: NOW, masterKeys: "" }),
    ),
  ]);
  for (const id of ["dlv_1", "dlv_2", "dlv_3"]) await pending(id, NOW);
});
afterEach(() => database.remove());

const pending = (id: string, dueAt: number) =>
  database.db.write([
    {
      sql: `INSERT INTO webhook_deliveries (id, webhook_id, sender_id, type, status, due_at, created_at)
        VALUES (?, 'whk_1', ?, 'open', 'pending', ?, ?)`,
      args: [id, sender.id, dueAt, NOW],
    },
  ]);

async function claim(id: string, instanceId: string, now = NOW): Promise<boolean> {
  const [written] = await database.db.write([claimDelivery(id, instanceId, now)]);
  return written?.changes === 1;
}

const claims = async () => {
  const rows = await database.db.all<{ id: string; by: string | null }>(
    "SELECT id, claimed_by AS by FROM webhook_deliveries ORDER BY id",
  );
  return rows.map(({ by }) => by);
};

describe("a due delivery", () => {
  test("a due delivery is claimed once, without its neighbours", async () => {
    expect(await Promise.all([claim("dlv_2", "ins_1"), claim("dlv_2", "ins_2")])).toEqual([true, false]);
    expect(await claims()).toEqual([null, "ins_1", null]);
  });

  test("a due delivery is not claimed before its time, nor by an instance that is no longer registered", async () => {
    expect(await claim("dlv_1", "ins_1", NOW - 1)).toBe(false);
    await database.db.write([deleteInstance("ins_2")]);
    expect(await claim("dlv_1", "ins_2")).toBe(false);
    expect(await claim("dlv_1", "ins_1")).toBe(true);
  });

  test("a due delivery is put off before its first attempt, without its neighbours", async () => {
    await database.db.write([delayFirstAttempt("dlv_2", 500)]);
    expect([await claim("dlv_1", "ins_1"), await claim("dlv_2", "ins_1", NOW + 499)]).toEqual([true, false]);
    expect(await claim("dlv_2", "ins_1", NOW + 500)).toBe(true);
    await database.db.write([...freeDeliveries(["dlv_2"], "ins_1", NOW), delayFirstAttempt("dlv_2", 500)]);
    expect(await claim("dlv_2", "ins_1")).toBe(true);
  });

  test("a due delivery is listed page by page, each once", async () => {
    await pending("dlv_0", NOW - 1);
    await pending("dlv_9", NOW + 1);
    const pages: string[][] = [];
    let after: DueDelivery | null = null;
    for (let looks = 0; looks < 3; looks++) {
      const page: DueDelivery[] = await dueDeliveries(database.db, NOW, after, 2);
      pages.push(page.map(({ id }) => id));
      after = page.at(-1) ?? after;
    }
    expect(pages).toEqual([["dlv_0", "dlv_1"], ["dlv_2", "dlv_3"], []]);
  });
});

describe("claims of an instance", () => {
  beforeEach(async () => {
    for (const [id, by] of [
      ["dlv_1", "ins_1"],
      ["dlv_2", "ins_1"],
      ["dlv_3", "ins_2"],
    ] as const)
      expect(await claim(id, by)).toBe(true);
  });

  test("claims of an instance are freed one by one, except those that another instance has by now", async () => {
    await database.db.write(freeDeliveries(["dlv_1", "dlv_3"], "ins_1", NOW));
    expect(await claims()).toEqual([null, "ins_1", "ins_2"]);
    expect(await claim("dlv_1", "ins_2")).toBe(true);
  });

  test("claims of an instance are freed all together, if the guard holds", async () => {
    const never = { sql: "1 = ?", args: [0] };
    await database.db.write([freeDeliveryClaims("ins_1", NOW, never)]);
    expect(await claims()).toEqual(["ins_1", "ins_1", "ins_2"]);
    await database.db.write([freeDeliveryClaims("ins_1", NOW)]);
    expect(await claims()).toEqual([null, null, "ins_2"]);
  });
});
