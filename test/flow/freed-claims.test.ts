import { afterEach, beforeEach, expect, test } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import { freeClaims } from "../../src/store/messages/outbox.ts";
import { insertProject } from "../../src/store/projects/projects.ts";
import { testSender } from "../support/api.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

const NOW = 1_750_000_000_000;
let database: TestDatabase;
beforeEach(async () => {
  database = await testDatabase();
});
afterEach(() => database.remove());

const sender = testSender("acc_1", "shop", NOW);

/** A message of two recipients: the dead process holds one, and the other has the given state. */
async function heldMessage(status: string, claimedBy: string | null): Promise<string> {
  const messageId = newId("msg", NOW);
  const recipient = (ord: number, is: string, by: string | null) => ({
    sql: `INSERT INTO recipients (message_id, ord, sender_id, email, domain, kind, status, claimed_by, due_at)
      VALUES (?, ?, ?, 'a@one.test', 'one.test', 'to', ?, ?, ?)`,
    args: [messageId, ord, sender.id, is, by, is === "delivery_delayed" ? NOW : null],
  });
  await database.db.write([
    {
      sql: `INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, created_at)
        VALUES (?, ?, 'outbound', 'sending', 'a@shop.test', '[]', 's', ?)`,
      args: [messageId, sender.id, NOW],
    },
    recipient(0, "sending", "ins_dead"),
    recipient(1, status, claimedBy),
  ]);
  return messageId;
}

test("each message with a recipient of a dead process gets its status from its own recipients", async () => {
  const { db } = database;
  const cases = [
    { status: "sending", claimedBy: "ins_lives", wanted: "sending" },
    { status: "delivery_delayed", claimedBy: null, wanted: "delivery_delayed" },
    { status: "delivered", claimedBy: null, wanted: "queued" },
  ];
  await db.write([
    {
      sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_1', 'a', 'o@x.test', 1)",
      args: [],
    },
    insertProject(sender),
  ]);
  const wanted: object[] = [];
  for (const one of cases) {
    wanted.push({ id: await heldMessage(one.status, one.claimedBy), status: one.wanted });
  }
  await db.write(freeClaims("ins_dead", NOW));
  expect(await db.all<object>("SELECT id, status FROM messages ORDER BY rowid")).toEqual(wanted);
});
