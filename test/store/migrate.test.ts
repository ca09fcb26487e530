import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { ROLL_UP_ORDER } from "../../src/core/states.ts";
import { MIGRATIONS, migrate, migrationStates, splitStatements } from "../../src/store/engine/migrate.ts";
import { newSchemaText, schemaText } from "../../scripts/schema.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { newFolder } from "../support/folder.ts";

let base: TestDatabase;
beforeEach(async () => {
  base = await testDatabase();
});
afterEach(() => base.remove());

test("db/schema.sql is the schema that the migrations make", async () => {
  const snapshot = await Bun.file(join(import.meta.dir, "../../db/schema.sql")).text();
  expect(await schemaText(base.db)).toBe(snapshot);
});

test("what is made to tell the schema goes, also where a migration fails", async () => {
  const all = dirname(newFolder("scratch"));
  const left = () => readdirSync(all).filter((name) => name.startsWith("postrider-schema-"));
  const before = left();
  const failed = await newSchemaText(async () => {
    throw new Error("no such table");
  }).then(() => null, String);
  expect(failed).toContain("no such table");
  expect(left()).toEqual(before);
});

/** Why a start is stopped. Not asked by `rejects`, which holds the event loop until a promise that may need it. */
async function refusal(): Promise<string> {
  return migrate(base.db, 1).then(() => "", String);
}

test("a second run applies nothing", async () => {
  expect(await migrate(base.db, 1)).toEqual([]);
  expect((await migrationStates(base.db)).every((state) => state.appliedAt !== null)).toBe(true);
});

test("a step whose text has changed since it was applied stops the start", async () => {
  await base.db.write([{ sql: "UPDATE schema_migrations SET checksum = 'x' WHERE version = 1", args: [] }]);
  expect(await refusal()).toContain("has changed since it was applied: the database is of a program");
});

test("a database newer than the program stops the start", async () => {
  await base.db.write([
    {
      sql: "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (?, 'x', 'x', 1)",
      args: [Math.max(...MIGRATIONS.map(({ version }) => version)) + 1],
    },
  ]);
  expect(await refusal()).toContain("newer than this program");
});

test("every table is STRICT", async () => {
  const tables = await base.db.all<{ name: string; strict: number }>(
    "SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'",
  );
  expect(tables.length).toBeGreaterThan(15);
  expect(tables.filter((table) => table.strict !== 1)).toEqual([]);
});

test("the states of the schema's checks are those of the state table", async () => {
  const row = await base.db.first<{ sql: string }>("SELECT sql FROM sqlite_schema WHERE name = 'recipients'");
  const check = /status IN \(([^)]*)\)/.exec(row?.sql ?? "")?.[1] ?? "";
  const states = (check.match(/'(\w+)'/g) ?? []).map((quoted) => quoted.slice(1, -1));
  expect(states.sort()).toEqual([...ROLL_UP_ORDER].sort());
});

describe("statements", () => {
  test("end at a semicolon that ends a line, a trigger at END;", () => {
    const sql =
      "-- a\nCREATE TABLE a (\n  b TEXT -- c; d\n);\n\nCREATE TRIGGER t AFTER INSERT ON a\nBEGIN\n  SELECT 1;\n  SELECT 2;\nEND;\nDROP TABLE a;\n";
    expect(splitStatements(sql).map((statement) => statement.split("\n").length)).toEqual([3, 5, 1]);
  });

  test("one that does not end is an error", () => {
    expect(() => splitStatements("CREATE TABLE a (\n  b TEXT\n)")).toThrow("unfinished");
  });
});
