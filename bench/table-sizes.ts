/**
 * Shows the bytes per message of each table and index: `bun bench/table-sizes.ts [--messages=N] [--keep=FOLDER]
 * [--json=FILE]`. The service's own writes and its indexing store the first messages. Copies of their rows, each a time
 * step later, make the rest, because ten million writes would take hours.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";
import { systemClock } from "../src/clock.ts";
import { encodeBase32 } from "../src/core/ids.ts";
import { indexMessages, MESSAGES_PER_TURN } from "../src/flows/sweep/index-messages.ts";
import { openDb } from "../src/store/engine/client.ts";
import { migrate } from "../src/store/engine/migrate.ts";
import { manualClock } from "../test/support/manual-clock.ts";
import { storeMail, WORLD } from "./support/daily-mail.ts";
import { handOver } from "./support/figures.ts";
import { benchFolder } from "./support/folder.ts";
import { keptFolder, numberOption } from "./support/options.ts";

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

const messages = numberOption("messages", 1_000_000);
const path = join(keptFolder() ?? benchFolder(), "postrider.db");

/** Stores the first messages and returns when the last was made. */
async function storeFirst(): Promise<void> {
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
function multiply(): void {
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

/** Indexes the messages for the search, as the chore does. */
async function index(): Promise<void> {
  const db = await openDb(systemClock, { url: `file:${path}`, authToken: null, syncUrl: null });
  const turn = indexMessages(db);
  for (let done = 0; done < messages + 60 * MESSAGES_PER_TURN; done += MESSAGES_PER_TURN) await turn();
  await db.close();
}

interface Size {
  name: string;
  octets: number;
}

/** Returns the bytes of each table and index, largest first. */
function sizes(): Size[] {
  const database = new Database(path);
  const found = database
    .prepare("SELECT name, pgsize AS octets FROM dbstat WHERE aggregate = TRUE ORDER BY pgsize DESC")
    .all() as Size[];
  const waiting = database.prepare("SELECT count(*) AS n FROM messages WHERE position IS NULL").get() as {
    n: number;
  };
  const stored = database.prepare("SELECT count(*) AS n FROM messages").get() as { n: number };
  database.close();
  if (stored.n !== messages || waiting.n !== 0)
    throw new Error(`${stored.n} messages are stored, ${waiting.n} of them are not indexed`);
  return found;
}

await storeFirst();
multiply();
await index();
const found = sizes();
const sum = found.reduce((octets, one) => octets + one.octets, 0);
console.log(`${messages} messages: ${(sum / MB).toFixed(0)} MB, ${(sum / messages).toFixed(0)} octets each`);
console.log("| table or index | octets per message | share |\n| --- | --- | --- |");
for (const { name, octets } of found.filter((one) => one.octets > sum / 1000))
  console.log(`| ${name} | ${(octets / messages).toFixed(0)} | ${((octets / sum) * 100).toFixed(1)} % |`);
handOver(
  Object.fromEntries(found.map(({ name, octets }) => [name, { "octets per message": octets / messages }])),
);
