import { afterEach, expect, test } from "bun:test";
import { systemClock } from "../../../src/clock.ts";
import { type Db, overEngine } from "../../../src/store/engine/client.ts";
import { openEmbedded } from "../../../src/store/embedded/embedded.ts";
import type { Engine } from "../../../src/store/sql/engine.ts";
import { type ConfigurationQuery, MAX_ANSWERS } from "../../../src/store/engine/config-cache.ts";
import { type TestDatabase, testDatabase } from "../../support/database.ts";
import { reason } from "../../support/reason.ts";

const NAME: ConfigurationQuery<{ name: string }, { name: string }> = {
  sql: "SELECT name FROM accounts WHERE id = ?",
  read: ({ name }) => ({ name }),
};
const insertAccount = (id: string) => ({
  sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES (?, 'made', 'a@a.test', 0)",
  args: [id],
});
const rename = (id: string, name: string) => ({
  sql: "UPDATE accounts SET name = ? WHERE id = ?",
  args: [name, id],
});

let database: TestDatabase | undefined;
afterEach(async () => {
  await database?.remove();
  database = undefined;
});

/** A file of one account, with a count of its queries. */
async function counted(change: (engine: Engine) => Partial<Engine> = () => ({})) {
  database = await testDatabase();
  await database.db.write([insertAccount("one")]);
  const file = openEmbedded(systemClock, { path: database.url.slice("file:".length), writer: null });
  let queries = 0;
  const engine: Engine = {
    ...file,
    first(sql, args) {
      queries++;
      return file.first(sql, args);
    },
    ...change(file),
  };
  const db: Db = overEngine(engine, systemClock);
  const asked = async (id = "one"): Promise<[name: string | undefined, queries: number]> => {
    queries = 0;
    const answer = await db.readConfig(NAME, [id]);
    return [answer?.name, queries];
  };
  return { db, asked, other: database.db };
}

test("an answer is queried once, and reused only for the same parameters", async () => {
  const { db, asked } = await counted();
  await db.write([insertAccount("two"), rename("two", "second")]);
  expect(await asked()).toEqual(["made", 1]);
  expect(await asked()).toEqual(["made", 0]);
  expect(await asked("two")).toEqual(["second", 1]);
  expect(await asked("two")).toEqual(["second", 0]);
  expect(await asked()).toEqual(["made", 0]);
  await db.close();
});

test("an empty answer is not cached", async () => {
  const { db, asked } = await counted();
  expect(await asked("none")).toEqual([undefined, 1]);
  expect(await asked("none")).toEqual([undefined, 1]);
  await db.close();
});

test("a change of configuration is seen, whichever connection makes it, and other writes invalidate nothing", async () => {
  const { db, asked, other } = await counted();
  const usage = (id: string) => ({
    sql: "INSERT INTO usage (sender_id, day, recipients) VALUES (?, 1, 1)",
    args: [id],
  });
  const sender = {
    sql: `INSERT INTO senders (id, account_id, external_id, name, plan, trust_tier, created_at)
      VALUES ('s', 'one', 's', 's', 'p', 't', 0)`,
    args: [],
  };
  await db.write([sender]);
  await asked();
  await db.write([usage("s")]);
  expect(await asked()).toEqual(["made", 0]);
  // It changes no row.
  await db.write([rename("none", "x")]);
  expect(await asked()).toEqual(["made", 0]);
  await db.write([rename("one", "own")]);
  expect(await asked()).toEqual(["own", 1]);
  await other.write([rename("one", "theirs")]);
  expect(await asked()).toEqual(["theirs", 1]);
  expect(await asked()).toEqual(["theirs", 0]);
  await db.migrate([rename("one", "migrated")]);
  expect(await asked()).toEqual(["migrated", 1]);
  await db.close();
});

test("statements of unknown forms count as changes", async () => {
  const forms = [
    "WITH n AS (SELECT 'x' AS name) UPDATE accounts SET name = (SELECT name FROM n)",
    "REPLACE INTO accounts (id, name, owner_email, created_at) VALUES ('one', 'x', 'a@a.test', 0)",
    "INSERT OR REPLACE INTO accounts (id, name, owner_email, created_at) VALUES ('one', 'x', 'a@a.test', 0)",
    "  update accounts SET name = 'x'",
    "UPDATE OR REPLACE accounts SET name = 'x'",
    "UPDATE main.accounts SET name = 'x'",
    "UPDATE \"accounts\" SET name = 'x'",
    "UPDATE accounts SET name = 'x' WHERE id = 'one' RETURNING id",
  ];
  for (const sql of forms) {
    const { db, asked } = await counted();
    await asked();
    await db.write([{ sql, args: [] }]);
    expect(await asked(), sql).toEqual(["x", 1]);
    await db.close();
    await database?.remove();
  }
});

test("a commit with an unknown outcome counts as a change", async () => {
  const { db, asked } = await counted((file) => ({
    async batch(statements) {
      await file.batch(statements);
      throw new Error("the reply was lost");
    },
  }));
  await asked();
  expect(String(await reason(db.write([rename("one", "lost")])))).toContain("the reply was lost");
  expect(await asked()).toEqual(["lost", 1]);
  await db.close();
});

test("an answer that was queried while configuration changed is not cached", async () => {
  const held = Promise.withResolvers<void>();
  let holds = false;
  const { db, asked } = await counted((file) => ({
    async first(sql, args) {
      const row = await file.first(sql, args);
      if (holds) await held.promise;
      return row;
    },
  }));
  holds = true;
  const late = db.readConfig(NAME, ["one"]);
  await db.write([rename("one", "new")]);
  held.resolve();
  expect(await late).toEqual({ name: "made" });
  expect((await asked())[0]).toBe("new");
  await db.close();
});

test("a limited number of answers of a query are cached, and the oldest is evicted first", async () => {
  const { db, asked } = await counted();
  const ids = Array.from({ length: MAX_ANSWERS }, (_, at) => `id${at}`);
  await db.write([
    {
      sql: `INSERT INTO accounts (id, name, owner_email, created_at)
        SELECT value, value, 'a@a.test', 0 FROM json_each(?)`,
      args: [JSON.stringify(ids)],
    },
  ]);
  for (const id of ids) await asked(id);
  expect(await asked("id0")).toEqual(["id0", 0]);
  expect(await asked("one")).toEqual(["made", 1]);
  expect(await asked("id1")).toEqual(["id1", 0]);
  expect(await asked("id0")).toEqual(["id0", 1]);
  await db.close();
});

test("an answer that callers share is immutable", async () => {
  const { db } = await counted();
  const answer = await db.readConfig(NAME, ["one"]);
  expect(() => Object.assign(answer ?? {}, { name: "mine" })).toThrow(TypeError);
  await db.close();
});

test("if an engine cannot see other processes' commits, its answers are not cached", async () => {
  const { db, asked } = await counted(() => ({ configVersion: () => null }));
  expect(await asked()).toEqual(["made", 1]);
  expect(await asked()).toEqual(["made", 1]);
  await db.close();
});
