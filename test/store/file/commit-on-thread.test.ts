import { afterEach, beforeEach, expect, test } from "bun:test";
import Database from "libsql";
import { systemClock } from "../../../src/clock.ts";
import { openEmbedded } from "../../../src/store/embedded/embedded.ts";
import type { Engine, Statement } from "../../../src/store/sql/engine.ts";
import { EngineError } from "../../../src/store/sql/errors.ts";
import { writerFor } from "../../../src/wiring/store/database.ts";
import { type TestDatabase, testDatabase } from "../../support/database.ts";
import { reason } from "../../support/reason.ts";

let database: TestDatabase;
let path: string;
let engine: Engine;
beforeEach(async () => {
  database = await testDatabase();
  path = database.url.slice("file:".length);
  const settings = { roles: new Set(["worker"] as const), submissionPort: null, submissionsPort: null };
  engine = openEmbedded(systemClock, { path, writer: writerFor(settings) });
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

test("reads during the disk wait of a commit see its data", async () => {
  await engine.batch([insertAccount("one")]);
  const writing = engine.batch([rename("one", "second"), insertAccount("two")]);
  const reading = Promise.all([nameOf("one"), names()]);
  expect(await reading).toEqual(["second", ["one", "two"]]);
  expect((await writing).map(({ changes }) => changes)).toEqual([1, 1]);
});

/** Another process's change, which waits for a commit in progress. */
function theirs(): void {
  const other = new Database(path, { timeout: 5000 });
  other.exec("INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('theirs', '', '', 0)");
  other.close();
}

test("a change of configuration is seen once it is committed, and counted once", async () => {
  const before = Number(engine.configVersion?.());
  const writing = engine.batch([insertAccount("one")]);
  // The disk may have it already.
  expect([before, before + 1]).toContain(Number(engine.configVersion?.()));
  await writing;
  expect(engine.configVersion?.()).toBe(before + 1);
});

test("another process's change of configuration is seen while our commit waits for the disk", async () => {
  const before = Number(engine.configVersion?.());
  theirs();
  const writing = engine.batch([insertAccount("ours")]);
  expect(Number(engine.configVersion?.())).toBeGreaterThan(before);
  await writing;
  expect(engine.configVersion?.()).toBe(before + 2);
});

test("another process's change of configuration is seen after a commit of ours whose end was not yet reported", async () => {
  const before = Number(engine.configVersion?.());
  const writing = engine.batch([insertAccount("ours")]);
  theirs();
  expect(engine.configVersion?.()).toBe(before + 2);
  await writing;
});

test("transactions requested together run one after another", async () => {
  const ids = Array.from({ length: 20 }, (_, at) => `account-${String(at).padStart(2, "0")}`);
  await Promise.all(ids.map((id) => engine.batch([insertAccount(id)])));
  expect(await names()).toEqual(ids);
});

test("a refused commit has no effect, and the next writer continues", async () => {
  await engine.batch([insertAccount("one")]);
  // A foreign key that is checked only at the commit.
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

test("closing a file waits for the commit in progress", async () => {
  const writing = engine.batch([insertAccount("one")]);
  await engine.close();
  expect((await writing).length).toBe(1);
  engine = openEmbedded(systemClock, { path, writer: null });
  expect(await names()).toEqual(["one"]);
});
