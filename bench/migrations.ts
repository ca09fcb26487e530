/**
 * Shows how long schema steps hold the writers of a database with many messages: `bun bench/migrations.ts
 * [--messages=N] [--json=FILE]`. Another process writes one row per commit all the time, as one of the version before
 * does during an upgrade.
 */
import { join } from "node:path";
import { systemClock } from "../src/clock.ts";
import { type Db, openDb } from "../src/store/engine/client.ts";
import { migrate } from "../src/store/engine/migrate.ts";
import { type Migration, MIGRATIONS } from "../src/store/engine/migrations.ts";
import { retryWhileBusy } from "../src/store/engine/retry-while-busy.ts";
import { NEXT } from "../test/upgrade/next-version.ts";
import { handOver } from "./support/figures.ts";
import { benchFolder } from "./support/folder.ts";
import { storeMany } from "./support/many-messages.ts";
import { numberOption } from "./support/options.ts";

const WRITER = process.argv.indexOf("--writer");
const open = (path: string) => openDb(systemClock, { url: `file:${path}`, authToken: null, syncUrl: null });
/** Time before and after a step in which the writer alone writes, milliseconds. */
const QUIET_MS = 2000;

/** Steps like those of later versions, with what is measured of each. */
const STEPS: readonly (readonly [name: string, step: Pick<Migration, "sql" | "fill">])[] = [
  ["no step", { sql: "" }],
  ["a column with a trigger", { sql: NEXT.sql }],
  ["filling that column", { sql: "", ...(NEXT.fill === undefined ? {} : { fill: NEXT.fill }) }],
  [
    "a side table with an index, filled",
    {
      sql: `CREATE TABLE bench_days (message_id TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE, day INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX bench_days_by_day ON bench_days (day, message_id);`,
      fill: [
        {
          table: "messages",
          by: "id",
          sql: `INSERT INTO bench_days (message_id, day) SELECT id, created_at / 86400000 FROM messages WHERE id BETWEEN ? AND ?
            ON CONFLICT DO NOTHING`,
        },
      ],
    },
  ],
  [
    "a partial index of all messages, which is empty",
    { sql: "CREATE INDEX bench_empty ON messages (sender_id, made_on) WHERE made_on < 0;" },
  ],
  [
    "an index of all messages",
    { sql: "CREATE INDEX bench_by_time ON messages (sender_id, created_at, id);" },
  ],
];

interface Wait {
  at: number;
  ms: number;
}

/** Writes until standard input ends, then prints how long each write took. */
async function write(path: string): Promise<void> {
  const db = await open(path);
  const waits: Wait[] = [];
  let ended = false;
  void (async () => {
    for await (const _ of Bun.stdin.stream());
    ended = true;
  })();
  console.log("writing");
  for (let count = 0; !ended; count++) {
    const at = Date.now();
    const begun = performance.now();
    await db.write([
      { sql: "UPDATE contacts SET first_name = ? WHERE id = 'con_bench'", args: [String(count)] },
    ]);
    waits.push({ at, ms: performance.now() - begun });
    await Bun.sleep(1);
  }
  await db.close();
  console.log(JSON.stringify(waits));
}

/** Runs a step while another process writes. Returns its time, and the waits of the writer in that time. */
async function measure(path: string, db: Db, step: Migration): Promise<{ ms: number; waits: number[] }> {
  const writer = Bun.spawn([process.execPath, import.meta.path, "--writer", path], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = writer.stdout.getReader();
  let output = new TextDecoder().decode((await reader.read()).value);
  await Bun.sleep(QUIET_MS);
  const from = Date.now();
  await retryWhileBusy(systemClock, () => migrate(db, from, [...MIGRATIONS, step], systemClock));
  const to = Date.now();
  await Bun.sleep(QUIET_MS);
  writer.stdin.end();
  for (let read = await reader.read(); !read.done; read = await reader.read())
    output += new TextDecoder().decode(read.value);
  await writer.exited;
  const all: Wait[] = JSON.parse(output.slice(output.indexOf("\n") + 1));
  // Without a step, all the time.
  const during = all.filter(({ at, ms }) => to - from < 50 || (at <= to && at + ms >= from));
  return { ms: to - from, waits: during.map(({ ms }) => ms).sort((a, b) => a - b) };
}

async function main(): Promise<void> {
  const messages = numberOption("messages", 200_000);
  const path = join(benchFolder(), "postrider.db");
  await storeMany(path, messages);
  const db = await open(path);
  await db.write([
    {
      sql: `INSERT INTO contacts (id, sender_id, email, email_key, created_at, updated_at)
        SELECT 'con_bench', id, 'a@x.test', 'a@x.test', 1, 1 FROM senders LIMIT 1`,
      args: [],
    },
  ]);
  const figures: Record<string, Record<string, number>> = {};
  console.log("| step | takes, ms | a write waits, ms: median | p99 | at most |\n|---|---|---|---|---|");
  const newest = Math.max(...MIGRATIONS.map(({ version }) => version));
  for (const [at, [name, { sql, fill }]] of STEPS.entries()) {
    const step = {
      version: newest + 1 + at,
      name,
      sql,
      worksWith: newest,
      ...(fill === undefined ? {} : { fill }),
    };
    const { ms, waits } = await measure(path, db, step);
    const share = (part: number): number =>
      Math.round((waits[Math.floor(waits.length * part)] ?? 0) * 10) / 10;
    const most = Math.round(waits.at(-1) ?? 0);
    console.log(`| ${name} | ${ms} | ${share(0.5)} | ${share(0.99)} | ${most} |`);
    figures[name] = { ms, "slowest write ms": most };
  }
  await db.close();
  handOver(figures);
}

await (WRITER < 0 ? main() : write(process.argv[WRITER + 1] ?? ""));
