import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import { ROLL_UP_ORDER } from "../../src/core/messages/states.ts";
import { insertEvents } from "../../src/store/events/events.ts";
import { holdRecipient } from "../../src/store/messages/held-recipients.ts";
import { insertInstance } from "../../src/store/installation/instances.ts";
import { claimRecipient, dueGuard, isClaimHeld, rollUpMessage } from "../../src/store/messages/outbox.ts";
import {
  findRecipient,
  insertRecipients,
  type TriedRecipient,
  waitingRecipient,
} from "../../src/store/messages/recipients.ts";
import { insertProject } from "../../src/store/projects/projects.ts";
import { testSender } from "../support/api.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

const NOW = 1_750_000_000_000;

let database: TestDatabase;
let messageId: string;

beforeEach(async () => {
  database = await testDatabase();
  messageId = newId("msg", NOW);
  const sender = testSender("acc_1", "shop", NOW);
  await database.db.write([
    {
      sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_1', 'a', 'o@x.test', 1)",
      args: [],
    },
    insertProject(sender),
    ...["ins_1", "ins_2"].map((id) =>
      insertInstance({ id, host: "here", pid: 1, heartbeatAt: NOW, masterKeys: "" }),
    ),
    {
      sql: `INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, created_at)
        VALUES (?, ?, 'outbound', 'queued', ?, '[]', 's', ?)`,
      args: [messageId, sender.id, "news@shop.test", NOW],
    },
    insertRecipients(
      sender.id,
      messageId,
      [
        {
          ord: 0,
          email: "Ada@one.test",
          domain: "one.test",
          kind: "to" as const,
          status: "queued" as const,
          reason: null,
          dueAt: NOW,
        },
      ],
      NOW,
    ),
  ]);
});
afterEach(() => database.remove());

async function waiting(now = NOW): Promise<TriedRecipient> {
  const found = await waitingRecipient(database.db, messageId, 0, now);
  if (found === null) throw new Error("nobody waits");
  return found.recipient;
}

/** A claim as a worker makes it, after its reads. */
async function claim(read: TriedRecipient, instanceId: string, now = NOW): Promise<boolean> {
  const event = {
    id: newId("evt", now),
    senderId: read.senderId,
    messageId,
    type: "sending" as const,
    email: read.email,
    data: {},
    createdAt: now,
  };
  const written = await database.db.write([
    insertEvents([event], dueGuard(read, instanceId, now)),
    claimRecipient(read, instanceId, now),
  ]);
  return written[1]?.changes === 1;
}

describe("a waiting recipient", () => {
  test("a waiting recipient is the requested one, if several are due", async () => {
    const { senderId } = await waiting();
    const second = newId("msg", NOW);
    const queued = { kind: "to" as const, status: "queued" as const, reason: null, dueAt: NOW };
    await database.db.write([
      {
        sql: `INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, created_at)
          VALUES (?, ?, 'outbound', 'queued', 'news@shop.test', '[]', 's', ?)`,
        args: [second, senderId, NOW],
      },
      insertRecipients(
        senderId,
        second,
        ["Bob", "Cem"].map((name, ord) => ({
          ...queued,
          ord,
          email: `${name}@one.test`,
          domain: "one.test",
        })),
        NOW,
      ),
    ]);
    const asked = [[messageId, 0] as const, [second, 0] as const, [second, 1] as const];
    const found = await Promise.all(asked.map(([id, ord]) => waitingRecipient(database.db, id, ord, NOW)));
    expect(found.map((one) => one?.recipient.email)).toEqual([
      "Ada@one.test",
      "Bob@one.test",
      "Cem@one.test",
    ]);
  });

  test("a waiting recipient is claimed by one of two workers that have both read it, with one event", async () => {
    const read = await waiting();
    const claims = await Promise.all([claim(read, "ins_1"), claim(read, "ins_2")]);
    expect(claims).toEqual([true, false]);
    expect((await database.db.all("SELECT id FROM events")).length).toBe(1);
    expect(await findRecipient(database.db, messageId, 0)).toMatchObject({ status: "sending", attempts: 1 });
  });

  test("a waiting recipient is not claimed with facts read before another worker's whole attempt", async () => {
    const read = await waiting();
    expect(await claim(read, "ins_1")).toBe(true);
    await database.db.write([
      {
        sql: "UPDATE recipients SET status = 'delivery_delayed', due_at = ?, claimed_by = NULL",
        args: [NOW],
      },
    ]);
    expect(await claim(read, "ins_2")).toBe(false);
    expect(await claim(await waiting(), "ins_2")).toBe(true);
  });

  test("a waiting recipient cannot be claimed before its time, or while it is put off", async () => {
    expect(await waitingRecipient(database.db, messageId, 0, NOW - 1)).toBeNull();
    const read = await waiting();
    await database.db.write([holdRecipient(read, "sender_suspended", NOW + 1000, NOW)]);
    expect(await waitingRecipient(database.db, messageId, 0, NOW + 999)).toBeNull();
    expect(await claim(read, "ins_1", NOW + 999)).toBe(false);
    expect(await waiting(NOW + 1000)).toMatchObject({ status: "queued", attempts: 0 });
  });

  test("a waiting recipient is held by the claim that took it, and not by one that differs in any way", async () => {
    expect(await claim(await waiting(), "ins_1")).toBe(true);
    const held = { messageId, ord: 0, instanceId: "ins_1", attempt: 1 };
    expect(await isClaimHeld(database.db, held)).toBe(true);
    const others = [{ messageId: newId("msg", NOW) }, { ord: 1 }, { instanceId: "ins_2" }, { attempt: 2 }];
    for (const other of others) expect(await isClaimHeld(database.db, { ...held, ...other })).toBe(false);
  });

  test("a waiting recipient is not put off once a worker has claimed it", async () => {
    const read = await waiting();
    await claim(read, "ins_1");
    const [held] = await database.db.write([holdRecipient(read, "sender_suspended", NOW + 1000, NOW)]);
    expect(held?.changes).toBe(0);
  });

  test.each([
    ["shop.test", 1, 1, "shop.test"],
    ["shop.test", 0, 1, null],
    ["shop.test", 1, 0, null],
    ["other.test", 1, 1, null],
  ])(
    "a waiting recipient has its bounces at %s, receiving %i, by an MX record seen %i, only if that is the From domain",
    async (name, receiving, mx, wanted) => {
      const { senderId } = await waiting();
      await database.db.write([
        {
          sql: `INSERT INTO domains (id, account_id, sender_id, name, status, receiving, mx_verified, created_at)
          VALUES ('dom_1', 'acc_1', ?, ?, 'verified', ?, ?, 1)`,
          args: [senderId, name, receiving, mx],
        },
      ]);
      expect((await waitingRecipient(database.db, messageId, 0, NOW))?.receivingDomain).toBe(wanted);
    },
  );
});

describe("a recipient's message", () => {
  const OWN = "sender_of_the_mail";
  const STRANGER = testSender("acc_1", "stranger", NOW);
  const suppression = (sender: string, email: string, expiresAt: number | null = null) => ({
    sql: `INSERT INTO suppressions (id, sender_id, email, reason, expires_at, created_at)
      VALUES ('sup_1', ?, ?, 'manual', ?, 1)`,
    args: [sender, email, expiresAt],
  });
  const contact = (sender: string, email: string, subscribed: number) => ({
    sql: `INSERT INTO contacts (id, sender_id, email, email_key, subscribed, created_at, updated_at)
      VALUES ('con_1', ?, ?, ?, ?, 1, 1)`,
    args: [sender, email, email, subscribed],
  });
  const domain = (sender: string, name: string, status: string) => ({
    sql: `INSERT INTO domains (id, account_id, sender_id, name, status, created_at)
      VALUES ('dom_1', 'acc_1', ?, ?, ?, 1)`,
    args: [sender, name, status],
  });
  const KEY = "ada@one.test";
  const FREE = { suppressed: false, unsubscribed: false, unverified: false };

  test.each([
    ["its project suppresses the address", suppression(OWN, KEY), { suppressed: true }],
    ["its project did until now", suppression(OWN, KEY, NOW), {}],
    ["its project suppresses another address", suppression(OWN, "bob@one.test"), {}],
    ["another project suppresses it", suppression(STRANGER.id, KEY), {}],
    ["the contact is unsubscribed", contact(OWN, KEY, 0), { unsubscribed: true }],
    ["the contact is subscribed", contact(OWN, KEY, 1), {}],
    ["another contact is unsubscribed", contact(OWN, "bob@one.test", 0), {}],
    ["another project's contact is unsubscribed", contact(STRANGER.id, KEY, 0), {}],
    ["its domain is not verified", domain(OWN, "shop.test", "pending"), { unverified: true }],
    ["its domain is verified", domain(OWN, "shop.test", "verified"), {}],
    ["another domain is not verified", domain(OWN, "other.test", "pending"), {}],
    ["another project's domain is not verified", domain(STRANGER.id, "shop.test", "pending"), {}],
  ])("a recipient's message is judged by its own project's facts: %s", async (_, { sql, args }, wanted) => {
    const { senderId } = await waiting();
    await database.db.write([
      insertProject(STRANGER),
      { sql: "UPDATE messages SET unsubscribe_link = 1", args: [] },
      { sql, args: args.map((value) => (value === OWN ? senderId : value)) },
    ]);
    expect(await waitingRecipient(database.db, messageId, 0, NOW)).toMatchObject({ ...FREE, ...wanted });
  });

  test("a recipient's message may go to an unsubscribed contact if it has no unsubscribe link", async () => {
    const { senderId } = await waiting();
    await database.db.write([contact(senderId, KEY, 0)]);
    expect(await waitingRecipient(database.db, messageId, 0, NOW)).toMatchObject(FREE);
  });
});

describe("a message's status", () => {
  test.each(ROLL_UP_ORDER.map((status, rank) => [status, ROLL_UP_ORDER.slice(rank)] as const))(
    "a message's status is %s if one recipient is, and the others are in earlier states",
    async (status, others) => {
      const { senderId } = await waiting();
      const rows = [...others].reverse().map((other, ord) => ({
        ord: ord + 1,
        email: "x@one.test",
        domain: "one.test",
        kind: "to" as const,
        status: other,
        reason: null,
        dueAt: null,
      }));
      await database.db.write([
        { sql: "DELETE FROM recipients", args: [] },
        insertRecipients(senderId, messageId, rows, NOW),
        rollUpMessage(messageId, NOW),
      ]);
      const read = "SELECT status, sent_at FROM messages";
      expect(await database.db.all<object>(read)).toEqual([{ status, sent_at: NOW }]);
    },
  );
});
