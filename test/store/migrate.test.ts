import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ROLL_UP_ORDER } from "../../src/core/messages/states.ts";
import {
  MIGRATIONS,
  type Migration,
  migrate,
  migrationStates,
  splitStatements,
} from "../../src/store/engine/migrate.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let base: TestDatabase;
beforeEach(async () => {
  base = await testDatabase();
});
afterEach(() => base.remove());

/** Returns the error that stops a start; "" if none does. `rejects` would hold the event loop that the promise needs. */
async function refusal(steps: readonly Migration[] = MIGRATIONS): Promise<string> {
  return migrate(base.db, 1, steps).then(() => "", String);
}

/** The newest step of the program. */
const NEWEST = Math.max(...MIGRATIONS.map(({ version }) => version));

/** A made-up further step: a table with a trigger, and rows that it copies from what the first step made. */
const FURTHER: Migration = {
  version: NEWEST + 1,
  name: "notes",
  worksWith: NEWEST + 1,
  sql: `CREATE TABLE notes (account_id TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT;
INSERT INTO notes (account_id, text) SELECT id, name FROM accounts;
CREATE TRIGGER notes_follow AFTER INSERT ON accounts
BEGIN
  INSERT INTO notes (account_id, text) VALUES (NEW.id, NEW.name);
END;
`,
};

describe("a further step", () => {
  const addAccount = (id: string) => ({
    sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES (?, ?, 'o@x.test', 1)",
    args: [id, id],
  });
  const notes = async () =>
    (await base.db.all<{ text: string }>("SELECT text FROM notes ORDER BY text")).map(({ text }) => text);

  test("a further step is applied once to a database that has the others, and keeps its rows", async () => {
    await base.db.write([addAccount("acc_1")]);
    expect(await migrate(base.db, 2, [...MIGRATIONS, FURTHER])).toEqual([NEWEST + 1]);
    expect(await migrate(base.db, 3, [...MIGRATIONS, FURTHER])).toEqual([]);
    await base.db.write([addAccount("acc_2")]);
    expect(await notes()).toEqual(["acc_1", "acc_2"]);
  });

  test("a further step is applied once if two processes start together", async () => {
    const steps = [...MIGRATIONS, FURTHER];
    const applied = await Promise.all([migrate(base.db, 2, steps), migrate(base.db, 2, steps)]);
    expect(applied.flat()).toEqual([NEWEST + 1]);
  });

  test("a further step that fails leaves nothing of itself", async () => {
    const broken = { ...FURTHER, sql: `${FURTHER.sql}INSERT INTO nowhere (a) VALUES (1);\n` };
    expect(await refusal([...MIGRATIONS, broken])).toContain("nowhere");
    expect(await migrate(base.db, 2, [...MIGRATIONS, FURTHER])).toEqual([NEWEST + 1]);
  });

  test("a further step stops the start of a program that does not know it, with both versions in the message", async () => {
    await migrate(base.db, 2, [...MIGRATIONS, FURTHER]);
    expect(await refusal()).toContain(
      `the database is at schema ${NEWEST + 1}, which needs a program with schema ${NEWEST + 1}; this program has ${NEWEST}`,
    );
  });

  test("a further step does not stop the program of the version before, if it only adds", async () => {
    await migrate(base.db, 2, [...MIGRATIONS, { ...FURTHER, worksWith: NEWEST }]);
    expect(await refusal()).toBe("");
    expect(await migrationStates(base.db)).toHaveLength(MIGRATIONS.length);
  });

  test("fills in old rows by bounded commits, and a start after a crash goes on", async () => {
    await base.db.write(["acc_1", "acc_2", "acc_3"].map(addAccount));
    const one = "(SELECT account_id FROM notes WHERE text NOT LIKE 'noted %' LIMIT 1)";
    const fill = [`UPDATE notes SET text = 'noted ' || text WHERE account_id IN ${one}`];
    const fails = [...fill, "UPDATE nowhere SET a = 1"];
    expect(await refusal([...MIGRATIONS, { ...FURTHER, fill: fails }])).toContain("nowhere");
    expect(await notes()).toEqual(["noted acc_1", "noted acc_2", "noted acc_3"]);
    await base.db.write([addAccount("acc_4")]);
    const steps = [...MIGRATIONS, { ...FURTHER, fill }];
    expect(await migrate(base.db, 3, steps)).toEqual([]);
    expect(await notes()).toEqual(["noted acc_1", "noted acc_2", "noted acc_3", "noted acc_4"]);
    await base.db.write([addAccount("acc_5")]);
    await migrate(base.db, 4, steps);
    expect(await notes()).toContain("acc_5");
  });
});

test("a second run applies nothing", async () => {
  expect(await migrate(base.db, 1)).toEqual([]);
  expect((await migrationStates(base.db)).every((state) => state.appliedAt !== null)).toBe(true);
});

test("a database that another version made with a different step stops the start", async () => {
  await base.db.write([{ sql: "UPDATE schema_migrations SET checksum = 'x' WHERE version = 1", args: [] }]);
  expect(await refusal()).toContain(
    "made by another build of Postrider, which had a different schema step 1 (initial). Run that build, or start with an empty DATA_DIR",
  );
});

test("a database newer than the program stops the start", async () => {
  await base.db.write([
    {
      sql: "INSERT INTO schema_migrations (version, name, checksum, works_with, applied_at) VALUES (?1, 'x', 'x', ?1, 1)",
      args: [NEWEST + 1],
    },
  ]);
  expect(await refusal()).toContain("Run the newer program");
});

test("every table is STRICT", async () => {
  const tables = await base.db.all<{ name: string; strict: number }>(
    "SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'",
  );
  expect(tables.length).toBeGreaterThan(15);
  expect(tables.filter((table) => table.strict !== 1)).toEqual([]);
});

/** Returns the SQL that made a table. */
async function tableSql(name: string): Promise<string> {
  const row = await base.db.first<{ sql: string }>("SELECT sql FROM sqlite_schema WHERE name = ?", [name]);
  return row?.sql ?? "";
}

test("the states of the schema's checks are those of the state table", async () => {
  const states = [...(await tableSql("recipients")).matchAll(/\bstatus = '(\w+)'/g)].map(
    ([, state]) => state,
  );
  expect(states.sort()).toEqual([...ROLL_UP_ORDER].sort());
});

// SQLite would build a table in memory for each such list, in each statement that writes the column.
test.each([
  "messages",
  "message_content",
  "attachments",
  "contents",
  "recipients",
  "attempts",
  "events",
  "threads",
  "webhook_deliveries",
])("the checks of %s, which each message writes, have no list of more than two values", async (name) => {
  const sql = await tableSql(name);
  expect(sql).toContain("STRICT");
  expect(sql.match(/\bIN \([^()]*,[^()]*,[^()]*\)/g)).toBeNull();
});

describe("statements", () => {
  test("statements end at a semicolon that ends a line, a trigger at END;", () => {
    const sql =
      "-- a\nCREATE TABLE a (\n  b TEXT -- c; d\n);\n\nCREATE TRIGGER t AFTER INSERT ON a\nBEGIN\n  SELECT 1;\n  SELECT 2;\nEND;\nDROP TABLE a;\n";
    expect(splitStatements(sql).map((statement) => statement.split("\n").length)).toEqual([3, 5, 1]);
  });

  test("one that does not end is an error", () => {
    expect(() => splitStatements("CREATE TABLE a (\n  b TEXT\n)")).toThrow("unfinished");
  });
});
