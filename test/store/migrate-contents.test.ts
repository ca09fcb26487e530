import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { getAttachment, loadAttachments } from "../../src/store/attachments.ts";
import { type Db, openDb, type Statement, type Value } from "../../src/store/engine/client.ts";
import { contentBytes } from "../../src/store/contents/content-read.ts";
import { getContent, getRaw } from "../../src/store/contents/message-content.ts";
import { MIGRATIONS, migrate, splitStatements } from "../../src/store/engine/migrate.ts";
import { findOutgoing } from "../../src/store/outgoing.ts";
import { newFolder } from "../support/folder.ts";

const NOW = 1_750_000_000_000;
const LONG = "A long text. ".repeat(2000);
const BYTES = Uint8Array.from({ length: 70_000 }, (_, at) => at & 255);
let folder: string;
let db: Db;

function insert(table: string, row: Record<string, Value>): Statement {
  const columns = Object.keys(row);
  const marks = columns.map(() => "?").join(", ");
  return {
    sql: `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${marks})`,
    args: Object.values(row),
  };
}

function message(id: string, direction: string): Statement {
  const fields = { status: "delivered", from_email: "a@home.test", to_list: "[]", subject: "S" };
  return insert("messages", { ...fields, id, sender_id: "snd_1", direction, created_at: NOW });
}

/** A database as the schema before left it, with a message of each kind. */
beforeEach(async () => {
  folder = newFolder("migrate");
  db = await openDb(systemClock, { url: `file:${join(folder, "old.db")}`, authToken: null, syncUrl: null });
  const before = MIGRATIONS.filter(({ version }) => version <= 6);
  for (const { sql } of before)
    await db.migrate(splitStatements(sql).map((statement) => ({ sql: statement, args: [] })));
  const part = { filename: "a.bin", content_type: "a/b", disposition: "attachment" };
  await db.write([
    insert("accounts", { id: "acc_1", name: "a", owner_email: "o@home.test", created_at: NOW }),
    insert("senders", {
      id: "snd_1",
      account_id: "acc_1",
      external_id: "x",
      name: "x",
      plan: "pro",
      trust_tier: "basic",
      created_at: NOW,
    }),
    message("msg_out", "outbound"),
    insert("message_content", {
      message_id: "msg_out",
      html: '<p>"Grüße"</p>',
      text: null,
      headers: '{"X-A":"1"}',
      data: '{"n":1}',
    }),
    insert("attachments", {
      ...part,
      id: "att_1",
      message_id: "msg_out",
      ord: 0,
      size: 70_000,
      bytes: BYTES,
    }),
    message("msg_empty", "outbound"),
    insert("message_content", { message_id: "msg_empty" }),
    message("msg_long", "outbound"),
    insert("message_content", {
      message_id: "msg_long",
      text: LONG,
      rendered: 1,
      raw: Buffer.from("as sent"),
    }),
    message("msg_in", "inbound"),
    insert("message_content", {
      message_id: "msg_in",
      text: `New.\n> ${LONG}`,
      headers: '{"Subject":"S"}',
      envelope: '{"mailFrom":"b@there.test"}',
      auth: '{"arc":{"result":"none"}}',
      reply_text: "New.",
      raw: BYTES,
    }),
    insert("attachments", { ...part, id: "att_2", message_id: "msg_in", ord: 0, size: 3, bytes: null }),
    message("msg_copy", "inbound"),
    insert("message_content", {
      message_id: "msg_copy",
      content_of: "msg_in",
      envelope: '{"mailFrom":"c@there.test"}',
    }),
  ]);
  await db.migrate([
    {
      sql: "CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT",
      args: [],
    },
    ...before.map(({ version, name, sql }) =>
      insert("schema_migrations", {
        version,
        name,
        checksum: new Bun.CryptoHasher("sha256").update(sql).digest("hex"),
        applied_at: NOW,
      }),
    ),
  ]);
  await migrate(db, NOW);
});
afterEach(async () => {
  await db.close();
});

const content = (id: string) => getContent({ db }, "snd_1", id);
async function raw(id: string): Promise<Buffer | null> {
  const kept = await getRaw(db, "snd_1", id);
  return kept === null ? null : Buffer.from(await contentBytes({ db }, kept.content));
}

test("what was sent keeps its bodies, fields, data and attachments", async () => {
  expect(await content("msg_out")).toMatchObject({
    html: '<p>"Grüße"</p>',
    text: null,
    headers: { "X-A": "1" },
    data: { n: 1 },
  });
  expect((await content("msg_long"))?.text).toBe(LONG);
  expect((await raw("msg_long"))?.toString()).toBe("as sent");
  expect(await content("msg_empty")).toMatchObject({ html: null, text: null, headers: {} });
  const attachments = await loadAttachments({ db }, "snd_1", "msg_out");
  expect(attachments?.map(({ bytes }) => Buffer.from(bytes).equals(BYTES))).toEqual([true]);
  expect(await findOutgoing({ db }, "snd_1", "msg_long")).toMatchObject({ text: LONG, rendered: true });
});

test("what was received keeps its bodies, fields and bytes, and so does its copy in another inbox", async () => {
  const bodies = {
    html: null,
    text: `New.\n> ${LONG}`,
    headers: { Subject: "S" },
    replyText: "New.",
    trace: null,
  };
  const envelopes = { msg_in: "b@there.test", msg_copy: "c@there.test" };
  for (const [id, mailFrom] of Object.entries(envelopes)) {
    expect(await content(id)).toMatchObject({ ...bodies, envelope: { mailFrom } });
    expect((await raw(id))?.equals(BYTES)).toBe(true);
  }
  expect(await getAttachment(db, "snd_1", "msg_in", "att_2")).toMatchObject({ size: 3, content: null });
});

test("each content is counted once for everybody who names it, and nothing is lost to the schema", async () => {
  const rows = await db.all<{ key: string; refs: number }>(
    "SELECT CAST(key AS TEXT) AS key, refs FROM contents ORDER BY key",
  );
  expect(rows.map(({ key, refs }) => [key, refs])).toEqual([
    ["attachment:att_1", 1],
    ["body:msg_in", 2],
    ["body:msg_long", 1],
    ["raw:msg_in", 2],
    ["raw:msg_long", 1],
  ]);
  expect(await db.all<unknown>("PRAGMA foreign_key_check")).toEqual([]);
  await db.write([{ sql: "DELETE FROM messages WHERE id = 'msg_out'", args: [] }]);
  expect(await getAttachment(db, "snd_1", "msg_out", "att_1")).toBeNull();
});

test("counting who shares a content looks only at those that do, so that time grows with the messages alone", async () => {
  const old = await openDb(systemClock, {
    url: `file:${join(folder, "planned.db")}`,
    authToken: null,
    syncUrl: null,
  });
  const statements = MIGRATIONS.filter(({ version }) => version <= 8).flatMap(({ sql }) =>
    splitStatements(sql),
  );
  const counting = statements.filter((sql) => sql.includes("o.content_of = "));
  const before = statements.slice(0, statements.indexOf(counting[0] ?? ""));
  await old.migrate(before.map((sql) => ({ sql, args: [] })));
  const plans: string[][] = [];
  for (const sql of counting) {
    const plan = await old.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`);
    plans.push(plan.map(({ detail }) => detail).filter((detail) => /\bo\b/.test(detail)));
  }
  await old.close();
  expect(plans).toHaveLength(2);
  for (const steps of plans)
    expect(steps).toEqual([expect.stringMatching(/^SEARCH o USING COVERING INDEX message_content_shared /)]);
});
