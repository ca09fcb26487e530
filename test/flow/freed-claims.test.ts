import { afterEach, beforeEach, expect, test } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import { freeClaims } from "../../src/store/outbox.ts";
import { insertSender } from "../../src/store/senders.ts";
import { testSender } from "../support/api.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

const NOW = 1_750_000_000_000;
let database: TestDatabase;
beforeEach(async () => {
  database = await testDatabase();
});
afterEach(() => database.remove());

test.each([
  ["sending", "ins_lives", "sending"],
  ["delivery_delayed", null, "delivery_delayed"],
  ["delivered", null, "queued"],
])(
  "a message of which a dead process held one, and the other is %s, is rolled up anew",
  async (status, claimedBy, wanted) => {
    const { db } = database;
    const messageId = newId("msg", NOW);
    const sender = testSender("acc_1", "shop", NOW);
    const recipient = (ord: number, is: string, by: string | null) => ({
      sql: `INSERT INTO recipients (message_id, ord, sender_id, email, domain, kind, status, claimed_by, due_at)
      VALUES (?, ?, ?, 'a@one.test', 'one.test', 'to', ?, ?, ?)`,
      args: [messageId, ord, sender.id, is, by, is === "delivery_delayed" ? NOW : null],
    });
    await db.write([
      {
        sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_1', 'a', 'o@x.test', 1)",
        args: [],
      },
      insertSender(sender),
      {
        sql: `INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, created_at)
        VALUES (?, ?, 'outbound', 'sending', 'a@shop.test', '[]', 's', ?)`,
        args: [messageId, sender.id, NOW],
      },
      recipient(0, "sending", "ins_dead"),
      recipient(1, status, claimedBy),
    ]);
    await db.write(freeClaims("ins_dead", NOW));
    expect(await db.first<{ status: string }>("SELECT status FROM messages")).toEqual({ status: wanted });
  },
);
