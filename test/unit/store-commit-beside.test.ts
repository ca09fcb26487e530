import { afterEach, beforeEach, expect, test } from "bun:test";
import Database from "libsql";
import { systemClock } from "../../src/clock.ts";
import { openEmbedded } from "../../src/store/engine/embedded.ts";
import { type Engine, EngineError, type Statement } from "../../src/store/engine/engine.ts";
import { writerFor } from "../../src/wiring/database.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { reason } from "../support/reason.ts";

let database: TestDatabase;
let path: string;
let engine: Engine;
beforeEach(async () => {
  database = await testDatabase();
  path = database.url.slice("file:".length);
  engine = openEmbedded(systemClock, { path, writer: writerFor({ roles: new Set(["worker"]) }) });
});
afterEach(async () => {
  await engine.close();
  await database.remove();
});

const insertAccount = (id: string): Statement => ({
  sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES (?, 'made', 'a@a.test', 0)",
  args: [id],
});
const rename = (id: string, name: string): Statement => ({
  sql: "UPDATE accounts SET name = ? WHERE id = ?",
  args: [name, id],
});
const nameOf = async (id: string) =>
  (await engine.first("SELECT name FROM accounts WHERE id = ?", [id]))?.name;
const names = async () => (await engine.all("SELECT id FROM accounts ORDER BY id", [])).map(({ id }) => id);

test("reads that come while a commit waits for the disk see what it has written", async () => {
  await engine.batch([insertAccount("one")]);
  const writing = engine.batch([rename("one", "second"), insertAccount("two")]);
  const reading = Promise.all([nameOf("one"), names()]);
  expect(await reading).toEqual(["second", ["one", "two"]]);
  expect((await writing).map(({ changes }) => changes)).toEqual([1, 1]);
});

/** Another process's change; it waits for a commit under way. */
function theirs(): void {
  const other = new Database(path, { timeout: 5000 });
  other.exec("INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('theirs', '', '', 0)");
  other.close();
}

test("a change of configuration is seen once it has been committed, and counted once", async () => {
  const before = Number(engine.version?.());
  const writing = engine.batch([insertAccount("one")]);
  // The disk may have it already.
  expect([before, before + 1]).toContain(Number(engine.version?.()));
  await writing;
  expect(engine.version?.()).toBe(before + 1);
});

test("another's change of configuration is seen while a commit of ours waits for the disk", async () => {
  const before = Number(engine.version?.());
  theirs();
  const writing = engine.batch([insertAccount("ours")]);
  expect(Number(engine.version?.())).toBeGreaterThan(before);
  await writing;
  expect(engine.version?.()).toBe(before + 2);
});

test("another's change of configuration is seen behind a commit of ours that has ended unheard", async () => {
  const before = Number(engine.version?.());
  const writing = engine.batch([insertAccount("ours")]);
  theirs();
  expect(engine.version?.()).toBe(before + 2);
  await writing;
});

test("transactions that are asked for together are made one after another", async () => {
  const ids = Array.from({ length: 20 }, (_, at) => `account-${String(at).padStart(2, "0")}`);
  await Promise.all(ids.map((id) => engine.batch([insertAccount(id)])));
  expect(await names()).toEqual(ids);
});

test("a commit that is refused takes no effect, and who waits for it goes on", async () => {
  await engine.batch([insertAccount("one")]);
  // A foreign key that is looked at no earlier than in the commit.
  const orphan: Statement[] = [
    { sql: "PRAGMA defer_foreign_keys = ON", args: [] },
    rename("one", "undone"),
    {
      sql: "INSERT INTO senders (id, account_id, external_id, name, plan, trust_tier, created_at) VALUES ('snd', 'none', '', '', '', '', 0)",
      args: [],
    },
  ];
  const writing = reason(engine.batch(orphan));
  const reading = nameOf("one");
  const next = engine.batch([insertAccount("two")]);
  const refusal = await writing;
  expect(refusal).toBeInstanceOf(EngineError);
  expect(refusal).toMatchObject({ fault: "constraint", statement: null });
  expect(await reading).toBe("made");
  expect((await next).length).toBe(1);
  expect(await names()).toEqual(["one", "two"]);
});

test("a file that is being closed waits for the commit under way", async () => {
  const writing = engine.batch([insertAccount("one")]);
  await engine.close();
  expect((await writing).length).toBe(1);
  engine = openEmbedded(systemClock, { path, writer: null });
  expect(await names()).toEqual(["one"]);
});
