import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ROLL_UP_ORDER } from "../../src/core/messages/states.ts";
import { migrate, migrationStates, ROWS_PER_FILL, splitStatements } from "../../src/store/engine/migrate.ts";
import { type Fill, MIGRATIONS, type Migration } from "../../src/store/engine/migrations.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { type EngineName, type TestDatabase, testDatabase } from "../support/database.ts";
import { KINDS } from "../../src/store/transfer/kinds.ts";
import { manualClock } from "../support/manual-clock.ts";

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

  /** Marks each note once. */
  const FILL: Fill = {
    table: "notes",
    by: "account_id",
    sql: "UPDATE notes SET text = 'noted ' || text WHERE account_id BETWEEN ? AND ? AND text NOT LIKE 'noted %'",
  };

  test("old rows are filled in by bounded commits, between which the clock lets others write", async () => {
    const ids = Array.from({ length: 2 * ROWS_PER_FILL + 1 }, (_, at) => `acc_${at}`);
    await base.db.write(ids.map(addAccount));
    const clock = manualClock();
    let commits = 0;
    const db = watched(base.db, () => commits++);
    const done = migrate(db, 2, [...MIGRATIONS, { ...FURTHER, fill: [FILL] }], clock);
    for (let step = 1; step <= 3; step++) {
      await (step === 1 ? clock.armed(10) : clock.rested(10));
      expect((await notes()).filter((text) => text.startsWith("noted"))).toHaveLength(
        Math.min(step * ROWS_PER_FILL, ids.length),
      );
      clock.advance(10);
    }
    await done;
    // The ledger, the step, three parts and the end.
    expect(commits).toBe(6);
  });

  test("a start that dies at any commit of a step is followed by one that completes it", async () => {
    await base.db.write(["acc_1", "acc_2"].map(addAccount));
    const steps = [
      ...MIGRATIONS,
      {
        ...FURTHER,
        fill: [
          FILL,
          {
            ...FILL,
            by: "rowid",
            sql: "UPDATE notes SET text = text || '!' WHERE rowid BETWEEN ? AND ? AND text NOT LIKE '%!'",
          },
        ],
      },
    ];
    let left = 0;
    const db = watched(base.db, () => {
      if (left-- === 0) throw new Error("the process ends");
    });
    let deaths = 0;
    for (let at = 0; ; at++) {
      left = at;
      const died = await migrate(db, 2, steps).then(
        () => false,
        () => true,
      );
      if (!died) break;
      deaths++;
    }
    expect(deaths).toBeGreaterThan(2);
    expect(await notes()).toEqual(["noted acc_1!", "noted acc_2!"]);
    expect(await migrate(base.db, 3, steps)).toEqual([]);
  });
});

/** The database, with a call before each of its commits. */
function watched(db: Db, before: () => void): Db {
  return {
    all: (sql, args) => db.all(sql, args),
    first: (sql, args) => db.first(sql, args),
    readConfig: (query, args) => db.readConfig(query, args),
    refreshReads: () => db.refreshReads(),
    syncWithPrimary: () => db.syncWithPrimary(),
    close: () => db.close(),
    async write(statements) {
      before();
      return db.write(statements);
    },
    async migrate(statements) {
      before();
      return db.migrate(statements);
    },
  };
}

test.each<EngineName>(["file", "server"])(
  "the list of states of a large table can grow without a copy of it, on a %s",
  async (engine) => {
    const other = await testDatabase(engine);
    try {
      const row = await other.db.first<{ sql: string }>(
        "SELECT sql FROM sqlite_schema WHERE name = 'messages'",
      );
      const [, check = ""] = /^ {2}status (TEXT NOT NULL CHECK \([^)]*\)),$/ms.exec(row?.sql ?? "") ?? [];
      expect(check).not.toContain(",");
      const grown = check.replace("(", "(status = 'parked' OR ");
      await other.db.migrate([
        { sql: `ALTER TABLE messages ALTER COLUMN status TO status ${grown}`, args: [] },
      ]);
      const project = [
        "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('a', 'a', 'o@x.test', 1)",
        "INSERT INTO senders (id, account_id, external_id, name, plan, trust_tier, created_at) VALUES ('s', 'a', 's', 's', 'pro', 'new', 1)",
      ];
      await other.db.write(project.map((sql) => ({ sql, args: [] })));
      const insert = (id: string, status: string) =>
        other.db
          .write([
            {
              sql: "INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, created_at) VALUES (?, 's', 'outbound', ?, 'a@x.test', '[]', '', 1)",
              args: [id, status],
            },
          ])
          .then(() => "stored", String);
      expect([
        await insert("m1", "parked"),
        await insert("m2", "queued"),
        await insert("m3", "lost"),
      ]).toEqual(["stored", "stored", expect.stringContaining("CHECK")]);
    } finally {
      await other.remove();
    }
  },
);

/**
 * Tables that grow with mail, audience and time. Rows of `fan_outs` live for seconds, and `audit_log` is not of the first step.
 */
const SMALL = new Set(["fan_outs", "thread_notes", "drafts"]);
const LARGE = [
  ...KINDS.flatMap(({ messages, table }) => (messages && !SMALL.has(table) ? [table] : [])),
  "contacts",
  "suppressions",
  "stats",
  "stats_destinations",
  "stats_providers",
  "usage",
  "reputation",
  "complaints",
  "report_rows",
  "taken_reports",
];
/** Indexes that later steps make on them, each with the time that it holds writers, for how many rows. */
const MEASURED: Readonly<Record<string, string>> = {
  messages_by_trust: "0.6 s with libSQL for 1,000,000 rows, none of which it holds, on a busy machine",
  threads_by_folder: "0.02 s with libSQL for 200,000 rows, none of which it holds",
  threads_leaving: "0.02 s with libSQL for 200,000 rows, none of which it holds",
  threads_by_assignee: "0.02 s with libSQL for 200,000 rows, none of which it holds",
};

test("no later step holds all writers for an index of a large table, unless somebody has measured it", () => {
  const made = MIGRATIONS.filter(({ version }) => version > 1).flatMap(({ sql }) =>
    [...sql.matchAll(/CREATE\s+(?:UNIQUE\s+)?INDEX\s+(\w+)\s+ON\s+(\w+)/gi)]
      .map(([, index = "", table = ""]) => ({ index, table }))
      .filter(({ table }) => !sql.includes(`CREATE TABLE ${table} (`)),
  );
  const holding = made.filter(({ index, table }) => LARGE.includes(table) && MEASURED[index] === undefined);
  expect(holding, "put the values into a table of its own, filled by a walk (docs/architecture.md)").toEqual(
    [],
  );
});

test("a second run applies nothing", async () => {
  expect(await migrate(base.db, 1)).toEqual([]);
  expect((await migrationStates(base.db)).every((state) => state.appliedAt !== null)).toBe(true);
});

test("a database that another version made with a different step stops the start", async () => {
  await base.db.write([{ sql: "UPDATE schema_migrations SET checksum = 'x' WHERE version = 1", args: [] }]);
  expect(await refusal()).toContain(
    "made by another build of Postrider, which had a different schema step 1 (initial). Run that build, or take its content into an empty DATA_DIR by postrider export and import",
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

test("every table is STRICT but the large ones, to which SQLite adds a column at once only without it", async () => {
  const tables = await base.db.all<{ name: string; strict: number }>(
    "SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'",
  );
  expect(tables.length).toBeGreaterThan(15);
  const loose = tables.filter((table) => table.strict !== 1).map(({ name }) => name);
  expect(loose.sort()).toEqual(LARGE.toSorted());
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
])(
  "no check or trigger of %s, which each message writes, has a list of more than two values",
  async (name) => {
    const rows = await base.db.all<{ sql: string | null }>(
      "SELECT sql FROM sqlite_schema WHERE tbl_name = ? ORDER BY type <> 'table'",
      [name],
    );
    const sql = rows.map((row) => row.sql ?? "").join("\n");
    expect(sql).toStartWith("CREATE TABLE");
    expect(sql.match(/\bIN \((?:'\w+'|\d+)(?:,\s*(?:'\w+'|\d+)){2,}\)/g)).toBeNull();
  },
);

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
