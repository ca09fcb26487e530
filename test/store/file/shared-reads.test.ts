import { afterEach, beforeEach, expect, test } from "bun:test";
import Database from "libsql";
import { systemClock } from "../../../src/clock.ts";
import { openEmbedded } from "../../../src/store/embedded/embedded.ts";
import type { Engine } from "../../../src/store/sql/engine.ts";
import { type TestDatabase, testDatabase } from "../../support/database.ts";
import { reason } from "../../support/reason.ts";

let database: TestDatabase;
let engine: Engine;
/** Another process's connection. */
let other: Database.Database;
beforeEach(async () => {
  database = await testDatabase();
  const path = database.url.slice("file:".length);
  engine = openEmbedded(systemClock, { path, writer: null });
  other = new Database(path, { timeout: 0 });
  other.exec(
    "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('one', 'first', 'a@a.test', 0)",
  );
});
afterEach(async () => {
  await engine.close();
  other.close();
  await database.remove();
});

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const name = async () => (await engine.first("SELECT name FROM accounts WHERE id = 'one'", []))?.name;
const rename = (to: string) => ({ sql: "UPDATE accounts SET name = ? WHERE id = 'one'", args: [to] });
const theirs = (to: string) => other.exec(`UPDATE accounts SET name = '${to}' WHERE id = 'one'`);

test("reads of one turn see one state, and those of the next turn see later writes of other processes", async () => {
  expect([await name(), await name()]).toEqual(["first", "first"]);
  theirs("second");
  expect(await name()).toBe("first");
  await turn();
  expect([await name(), await name()]).toEqual(["second", "second"]);
});

test("our own write is seen at once, even by reads in the middle of a turn", async () => {
  expect([await name(), await name()]).toEqual(["first", "first"]);
  await engine.batch([rename("own")]);
  expect([await name(), await name()]).toEqual(["own", "own"]);
  theirs("theirs");
  await engine.batch([{ sql: "UPDATE accounts SET name = name || ' and own' WHERE id = 'one'", args: [] }]);
  expect([await name(), await name()]).toEqual(["theirs and own", "theirs and own"]);
});

test("a refused write does not change the reads of the turn", async () => {
  expect([await name(), await name()]).toEqual(["first", "first"]);
  const twice = { sql: "INSERT INTO accounts SELECT * FROM accounts", args: [] };
  expect(String(await reason(engine.batch([rename("undone"), twice])))).toContain("UNIQUE");
  expect([await name(), await name()]).toEqual(["first", "first"]);
});

test("after a turn no read transaction stays open, so that another process may empty the log", async () => {
  const emptied = () =>
    Number((other.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() as { busy: number }).busy);
  for (let read = 0; read < 5; read++) await name();
  expect(emptied()).toBe(1);
  await turn();
  expect(emptied()).toBe(0);
  await name();
  await engine.all("SELECT id FROM accounts", []);
  expect(String(await reason(engine.first("SELECT missing FROM accounts", [])))).toContain("no such column");
  await turn();
  expect(emptied()).toBe(0);
});

test("a statement that is not read to its end blocks no commit", async () => {
  const plan = "EXPLAIN QUERY PLAN UPDATE accounts SET name = 'x'";
  for (let read = 0; read < 3; read++) await engine.first(plan, []);
  await turn();
  theirs("second");
  for (let read = 0; read < 3; read++) await engine.first(plan, []);
  await engine.batch([rename("own")]);
  expect(await name()).toBe("own");
});

test("an engine can close in the middle of a turn's reads", async () => {
  await name();
  await name();
  await engine.close();
  await turn();
  other.exec("BEGIN EXCLUSIVE; ROLLBACK");
  engine = openEmbedded(systemClock, { path: database.url.slice("file:".length), writer: null });
  expect(await name()).toBe("first");
});
