import { statSync } from "node:fs";
import Database from "libsql";
import { systemClock } from "../../src/clock.ts";
import { encodeBase32 } from "../../src/core/ids.ts";
import { openDb } from "../../src/store/engine/client.ts";
import { migrate } from "../../src/store/engine/migrate.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { storeMail, WORLD } from "./daily-mail.ts";

/** Messages that the service stores itself. All are made within one step. */
const FIRST = 50_000;
const AT_A_TIME = 500;
/** Time of a copy after the one before, in milliseconds: 2^20, the part of an id's time that its first six digits hold. */
const STEP_MS = 2 ** 20;
const STEP_DIGITS = 6;
const BEGIN = Math.ceil(Date.parse("2026-03-01T00:00:00Z") / STEP_MS) * STEP_MS;
/** Tables with rows for each message. The index of the search is one of FTS5's own tables, filled by the chore. */
const TABLES = [
  "threads",
  "thread_references",
  "messages",
  "contents",
  "message_content",
  "recipients",
  "attempts",
  "events",
  "webhook_deliveries",
] as const;
const MB = 1024 * 1024;

/**
 * Makes a database with many messages, a multiple of 50 000. The service's own writes store the first ones. Copies of their
 * rows, each a time step later, make the rest, because ten million writes would take hours.
 */
export async function storeMany(path: string, messages: number): Promise<void> {
  await storeFirst(path);
  multiply(path, messages);
}

/** Stores the first messages and returns when the last was made. */
async function storeFirst(path: string): Promise<void> {
  const clock = manualClock(BEGIN);
  const db = await openDb(systemClock, { url: `file:${path}`, authToken: null, syncUrl: null });
  await migrate(db, clock.now());
  await db.write(WORLD.map((sql) => ({ sql, args: [] })));
  for (let at = 0; at < FIRST; at += AT_A_TIME) {
    await Promise.all(
      Array.from({ length: AT_A_TIME }, (_, one) =>
        storeMail({ db, clock }, at + one, { attachments: false }),
      ),
    );
    clock.advance(Math.floor((STEP_MS * AT_A_TIME) / FIRST) - 1);
  }
  await db.close();
}

/** Returns the first digits of ids that are made in a step. */
function digitsOf(step: number): string {
  const octets = Buffer.alloc(16);
  octets.writeUIntBE(BEGIN + step * STEP_MS, 0, 6);
  return encodeBase32(octets).slice(0, STEP_DIGITS);
}

/** Returns the SQL that copies the rows of the first step into another step. */
function copyOfTable(database: Database.Database, table: string): string {
  const columns = database.prepare(`SELECT name, type FROM pragma_table_info('${table}')`).all() as {
    name: string;
    type: string;
  }[];
  const copied = columns.filter(({ name }) => !(table === "contents" && name === "id"));
  const values = copied.map(({ name, type }) => {
    if (name === "position") return "NULL";
    if (type === "TEXT") return `replace(${name}, :from, :to)`;
    if (name.endsWith("_at")) return `${name} + :later`;
    // The first bytes of a content's key stay, so that keys come in random order.
    if (type === "BLOB" && name !== "bytes") return `unhex(hex(substr(${name}, 1, 28)) || :tail)`;
    return name;
  });
  const names = copied.map(({ name }) => name).join(", ");
  const first =
    table === "contents"
      ? "created_at < :end"
      : `${copied[0]?.name === "inbox_id" ? "thread_id" : copied[0]?.name} < :last`;
  return `INSERT INTO ${table} (${names}) SELECT ${values.join(", ")} FROM ${table} WHERE ${first}`;
}

/** Copies the rows of the first messages until there are enough. Triggers would count them in statistics alone. */
function multiply(path: string, messages: number): void {
  const database = new Database(path);
  database.exec("PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000; PRAGMA foreign_keys = OFF");
  const triggers = database.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all() as {
    name: string;
    sql: string;
  }[];
  for (const { name } of triggers) database.exec(`DROP TRIGGER ${name}`);
  const from = digitsOf(0);
  const copies = TABLES.map((table) => [table, database.prepare(copyOfTable(database, table))] as const);
  for (let step = 1; step < messages / FIRST; step++) {
    database.exec("BEGIN");
    for (const [table, copy] of copies) {
      const prefix = { thread_references: "thr", threads: "thr", webhook_deliveries: "dlv" } as Record<
        string,
        string
      >;
      const values = {
        from,
        to: digitsOf(step),
        later: step * STEP_MS,
        end: BEGIN + STEP_MS,
        last: `${prefix[table] ?? "msg"}_${digitsOf(1)}`,
        tail: step.toString(16).padStart(8, "0"),
      };
      const { changes } = copy.run(values);
      if (changes === 0) throw new Error(`no row of ${table} was copied`);
    }
    database.exec("COMMIT");
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    if (step % 20 === 0)
      console.error(`${(step + 1) * FIRST} messages, ${(statSync(path).size / MB).toFixed(0)} MB`);
  }
  for (const { sql } of triggers) database.exec(sql);
  database.close();
}
