import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Database from "libsql";
import { arrivalFacts } from "../../src/store/messages/arrivals.ts";
import type { ConfigurationQuery } from "../../src/store/engine/config-cache.ts";
import type { Statement } from "../../src/store/engine/client.ts";
import { findKeyByHash, insertKey, revokeKey } from "../../src/store/projects/keys.ts";
import { planOf } from "../../src/store/projects/routes.ts";
import { findProject, insertProject, updateProject } from "../../src/store/projects/projects.ts";
import {
  inboxAt,
  installationKey,
  ownerEmail,
  receivingDomain,
  sendFacts,
  signingKeys,
} from "../../src/store/messages/sending.ts";
import { subscriptions } from "../../src/store/webhooks/webhook-deliveries.ts";
import { usedLists } from "../../src/store/threads/listed-senders.ts";
import { testSender } from "../support/api.ts";
import { around } from "../support/around.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { erasedForms } from "../../src/store/projects/erased-addresses.ts";
import { findSession } from "../../src/store/projects/member-sessions.ts";
import { reason } from "../support/reason.ts";

const NOW = 1_750_000_000_000;
const SENDER = testSender("acc_config", "config", NOW);
const QUESTION = {
  fromDomain: "a.test",
  inboxAddress: "i@a.test",
  keys: ["x@b.test"],
  unsubscribeLink: true,
};
let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
  const account = "INSERT INTO accounts (id, name, owner_email, created_at) VALUES (?, 'a', 'a@a.test', 0)";
  await database.db.write([{ sql: account, args: [SENDER.accountId] }, insertProject(SENDER)]);
});
afterAll(() => database.remove());

/** Every configuration query, called as the functions that use it do. */
async function queriesAsked(): Promise<ConfigurationQuery<never, unknown>[]> {
  const asked: ConfigurationQuery<never, unknown>[] = [];
  const db = {
    ...around(database.db),
    async readConfig<Row, Answer>(query: ConfigurationQuery<Row, Answer>) {
      asked.push(query);
      return null;
    },
  };
  await findKeyByHash(db, "hash");
  await findProject(db, "acc", "name");
  await findSession(db, "session");
  await erasedForms(db, "sender", []);
  await subscriptions(db, "sender");
  await sendFacts(db, SENDER, QUESTION, NOW);
  await signingKeys(db, "sender", "a.test");
  await installationKey(db);
  await ownerEmail(db, "acc");
  await receivingDomain(db, "a.test");
  await inboxAt(db, "dom", "i@a.test");
  await usedLists(db, "sender");
  await planOf(db, "sender", null);
  const mail = { rfcMessageId: "<a@b.test>", related: [], since: 0, limit: 1 };
  await arrivalFacts(db, { id: "inbox", senderId: "sender" }, mail);
  return asked;
}

/** The changes of a table, and the columns whose change counts; null: all of them. */
interface Counted {
  event: string;
  columns: string[] | null;
}

/** Columns that change with traffic. */
const NOT_CONFIGURATION: Readonly<Record<string, readonly string[]>> = {
  inboxes: ["received_count", "signature"],
  // How far the values of a deleted one are removed, and what only its own operations show.
  contact_properties: ["id", "sender_id", "walked_to", "created_at", "updated_at"],
  topics: ["walked_to"],
  rules: ["failures"],
  members: ["invited_by", "last_seen_at"],
  member_sessions: ["ip", "user_agent", "last_used_at", "created_at"],
};

/** The tables whose changes count as changes of configuration, by their triggers. */
async function configuration(): Promise<Map<string, Counted[]>> {
  const triggers = await database.db.all<{ tbl_name: string; sql: string }>(
    "SELECT tbl_name, sql FROM sqlite_master WHERE type = 'trigger' AND sql LIKE '%UPDATE configuration_version SET value = value + 1%'",
  );
  const tables = new Map<string, Counted[]>();
  for (const { tbl_name: table, sql } of triggers) {
    const [, event = "", columns] = /AFTER (INSERT|UPDATE|DELETE)(?: OF ([a-z_,\s]+))? ON/.exec(sql) ?? [];
    const counted = { event, columns: columns?.split(/,\s*/) ?? null };
    tables.set(table, [...(tables.get(table) ?? []), counted]);
  }
  return tables;
}

describe("a cached configuration query", () => {
  const secretHash = "ab".repeat(32);
  const key = {
    id: "key_recall",
    accountId: SENDER.accountId,
    name: "k",
    keyPrefix: "pk",
    last4: "last",
    senderId: SENDER.id,
    senderExternalId: SENDER.externalId,
    scopes: [],
    lastUsedAt: null,
    revokedAt: null,
    createdAt: NOW,
    allowRecipients: null,
    approval: false,
    inboxIds: null,
    createdBy: null,
    createdByName: null,
  };

  test("a cached configuration query matches the database after each write of this process", async () => {
    const { db } = database;
    expect(await findKeyByHash(db, secretHash)).toBeNull();
    await db.write([insertKey(key, secretHash)]);
    expect(await findKeyByHash(db, secretHash)).toMatchObject({ key, sender: SENDER });
    await updateProject(db, SENDER.accountId, SENDER.id, { name: "renamed" });
    expect((await findKeyByHash(db, secretHash))?.sender?.name).toBe("renamed");
    expect((await findProject(db, SENDER.accountId, SENDER.id))?.name).toBe("renamed");
  });

  test("a cached configuration query matches the database after a write of another process", async () => {
    const { db } = database;
    const another = await database.another();
    try {
      await database.caughtUp(another);
      for (const name of ["first", "second"]) {
        expect((await findKeyByHash(db, secretHash))?.sender?.name).not.toBe(name);
        await updateProject(another, SENDER.accountId, SENDER.id, { name });
        await database.caughtUp();
        expect((await findKeyByHash(db, secretHash))?.sender?.name).toBe(name);
      }
      await revokeKey(another, SENDER.accountId, null, key.id, NOW + 1);
      await database.caughtUp();
      expect((await findKeyByHash(db, secretHash))?.key.revokedAt).toBe(NOW + 1);
    } finally {
      await another.close();
    }
  });
});

describe("the tables that configuration queries read", () => {
  test("the tables that configuration queries read are configuration", async () => {
    const queries = await queriesAsked();
    expect(queries.length).toBe(14);
    const tables = await configuration();
    const roots = new Map(
      (
        await database.db.all<{ rootpage: number; tbl_name: string }>(
          "SELECT rootpage, tbl_name FROM sqlite_master WHERE rootpage > 0",
        )
      ).map(({ rootpage, tbl_name }) => [rootpage, tbl_name]),
    );
    for (const { sql } of queries) {
      const steps = await database.db.all<{ opcode: string; p2: number }>(`EXPLAIN ${sql}`);
      const read = steps.filter(({ opcode }) => opcode === "OpenRead").map(({ p2 }) => roots.get(p2) ?? "?");
      expect(read.length, sql).toBeGreaterThan(0);
      expect(
        read.filter((table) => !tables.has(table)),
        sql,
      ).toEqual([]);
    }
  });

  test("the tables that configuration queries read do not contain times or counts that change with traffic", async () => {
    for (const { sql } of await queriesAsked())
      expect(sql).not.toMatch(/received_count|unixepoch|_until\b|now/i);
  });

  test("the tables that configuration queries read count every change, except of what changes with traffic", async () => {
    const tables = await configuration();
    expect(tables.size).toBe(14);
    for (const [table, counted] of tables) {
      expect(counted.map(({ event }) => event).sort(), table).toEqual(["DELETE", "INSERT", "UPDATE"]);
      const columns = await database.db.all<{ name: string }>(
        `SELECT name FROM pragma_table_info('${table}')`,
      );
      const missing = counted.flatMap((one) =>
        one.columns === null ? [] : columns.filter(({ name }) => one.columns?.includes(name) !== true),
      );
      expect(
        missing.map(({ name }) => name),
        table,
      ).toEqual([...(NOT_CONFIGURATION[table] ?? [])]);
    }
  });

  test("the tables that configuration queries read are changed by no write to another table", async () => {
    const tables = await configuration();
    const schema = await database.db.all<{ type: string; name: string; tbl_name: string; sql: string }>(
      "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE type IN ('table', 'trigger') AND sql IS NOT NULL",
    );
    const triggers = schema.filter(({ type }) => type === "trigger");
    expect(triggers.length).toBeGreaterThan(0);
    const changed = new RegExp(
      `\\b(?:INTO|UPDATE|DELETE FROM)\\s+(?:${[...tables.keys()].join("|")})\\b`,
      "i",
    );
    for (const { name, sql } of triggers) expect(sql, name).not.toMatch(changed);
    for (const table of tables.keys()) {
      const parents = await database.db.all<{ table: string }>(
        `SELECT "table" FROM pragma_foreign_key_list('${table}') WHERE on_delete <> 'NO ACTION' OR on_update <> 'NO ACTION'`,
      );
      expect(
        parents.map((parent) => parent.table).filter((parent) => !tables.has(parent)),
        table,
      ).toEqual([]);
    }
  });
});

test("a statement that the database refuses leaves the cache correct", async () => {
  const { db } = database;
  const before = await findProject(db, SENDER.accountId, SENDER.id);
  const twice: Statement[] = [
    { sql: "UPDATE senders SET name = 'undone' WHERE id = ?", args: [SENDER.id] },
    insertProject(SENDER),
  ];
  expect(await reason(db.write(twice))).toBeInstanceOf(Error);
  expect(await findProject(db, SENDER.accountId, SENDER.id)).toEqual(before);
});

test("a read after a network message is not older than that message, even within a turn", async () => {
  const own = await testDatabase("file");
  const other = new Database(own.url.slice("file:".length), { timeout: 5000 });
  const account = "INSERT INTO accounts (id, name, owner_email, created_at) VALUES (?, 'a', 'a@a.test', 0)";
  const names = async () => [
    (await own.db.first<{ name: string }>("SELECT name FROM accounts"))?.name,
    (await findProject(own.db, SENDER.accountId, SENDER.id))?.name,
  ];
  try {
    await own.db.write([{ sql: account, args: [SENDER.accountId] }, insertProject(SENDER)]);
    await new Promise((resolve) => setImmediate(resolve));
    const before = await names();
    expect(await names()).toEqual(before);
    other.exec("UPDATE accounts SET name = 'new'; UPDATE senders SET name = 'new'");
    // Reads of a turn see the database as it is at one moment.
    expect(await names()).toEqual(before);
    own.db.refreshReads();
    expect(await names()).toEqual(["new", "new"]);
    // And again, for later reads of that turn: a connection is read while another request is handled.
    other.exec("UPDATE accounts SET name = 'newer'; UPDATE senders SET name = 'newer'");
    own.db.refreshReads();
    expect(await names()).toEqual(["newer", "newer"]);
  } finally {
    other.close();
    await own.remove();
  }
});
