/**
 * Shows whether the database stops growing under a retention: a week of mail on a simulated clock. `bun
 * bench/retention.ts [--messages=N] [--json=FILE]`. Exits with 1 if the file of day 7 is more than three tenths
 * larger than that of day 4.
 */
import { DAY_MS } from "../src/core/time/units.ts";
import { statSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../src/clock.ts";
import { removeUnusedContents } from "../src/flows/sweep/removals.ts";
import { indexMessages } from "../src/flows/sweep/index-messages.ts";
import {
  forgetContents,
  forgetCounts,
  forgetDeliveries,
  forgetMessages,
} from "../src/flows/sweep/retention.ts";
import { type Db, openDb } from "../src/store/engine/client.ts";
import { migrate } from "../src/store/engine/migrate.ts";
import { manualClock } from "../test/support/manual-clock.ts";
import { storeMail, WORLD } from "./support/daily-mail.ts";
import { handOver } from "./support/figures.ts";
import { benchFolder } from "./support/folder.ts";
import { numberOption } from "./support/options.ts";

const DAYS = 7;
const MESSAGES_A_DAY = numberOption("messages", 5000);
const CONTENT_DAYS = 2;
const EVENT_DAYS = 3;
/** The day from which as much is deleted as arrives, and the most that the last day's file may exceed it. */
const LEVEL_DAY = 4;
const MOST_GROWTH = 1.3;
/** Steps of a day: each is a part of its messages, then the chores. */
const STEPS = 12;
/** Rounds of chores after each step. They delete more than the step added; the service makes one round per second. */
const TURNS = 2;
/** Messages stored in one commit: the bench measures the file, not the disk. */
const AT_A_TIME = 50;
const MB = 1024 * 1024;
const TABLES = [
  "messages",
  "events",
  "contents",
  "threads",
  "thread_references",
  "webhook_deliveries",
] as const;

async function main(): Promise<void> {
  const path = join(benchFolder(), "postrider.db");
  const clock = manualClock(Date.parse("2026-03-01T00:00:00Z"));
  const db = await openDb(systemClock, { url: `file:${path}`, authToken: null, syncUrl: null });
  await migrate(db, clock.now());
  await db.write(WORLD.map((sql) => ({ sql, args: [] })));
  const deps = { db, clock };
  const chores: readonly [string, () => Promise<void>][] = [
    ["contents", forgetContents(deps, CONTENT_DAYS)],
    ["messages", forgetMessages(deps, EVENT_DAYS)],
    ["webhook log", forgetDeliveries(deps, EVENT_DAYS)],
    ["counts", forgetCounts(deps)],
    ["unused", () => removeUnusedContents(deps)],
    ["index", indexMessages(db)],
  ];
  const spent = new Map<string, number>();
  const sizes: number[] = [];
  console.log(`| day | MB | of it free | ${TABLES.join(" | ")} | index, KB |`);
  console.log(`| ${"--- | ".repeat(TABLES.length + 4)}`);
  let at = 0;
  for (let day = 1; day <= DAYS; day++) {
    for (let step = 0; step < STEPS; step++) {
      const share =
        Math.round((MESSAGES_A_DAY * (step + 1)) / STEPS) - Math.round((MESSAGES_A_DAY * step) / STEPS);
      for (let left = share; left > 0; left -= AT_A_TIME) {
        const mails = Math.min(left, AT_A_TIME);
        await Promise.all(Array.from({ length: mails }, () => storeMail(deps, at++)));
        clock.advance(Math.floor((DAY_MS / STEPS / share) * mails));
      }
      for (let turn = 0; turn < TURNS; turn++)
        for (const [name, chore] of chores) {
          const began = performance.now();
          await chore();
          spent.set(name, (spent.get(name) ?? 0) + performance.now() - began);
        }
    }
    sizes.push(await report(db, path, day));
  }
  for (const [name, ms] of spent) console.log(`${name}: ${Math.round(ms)} ms in all`);
  await db.close();
  const [level = 0, last = 0] = [sizes[LEVEL_DAY - 1], sizes[DAYS - 1]];
  console.log(`day ${DAYS} is ${(last / level).toFixed(2)} times day ${LEVEL_DAY}`);
  handOver({
    "level day": { day: LEVEL_DAY, MB: level / MB, "messages a day": MESSAGES_A_DAY },
    "last day": { day: DAYS, MB: last / MB },
  });
  process.exitCode = last <= level * MOST_GROWTH ? 0 : 1;
}

/** Prints a day's line. Returns the size of the file. */
async function report(db: Db, path: string, day: number): Promise<number> {
  const figure = async (sql: string): Promise<number> => (await db.first<{ n: number }>(sql))?.n ?? 0;
  const page = await figure("SELECT page_size AS n FROM pragma_page_size");
  const free = (await figure("SELECT freelist_count AS n FROM pragma_freelist_count")) * page;
  const rows: number[] = [];
  for (const table of TABLES) rows.push(await figure(`SELECT count(*) AS n FROM ${table}`));
  const index = await figure(
    "SELECT sum(pgsize) AS n FROM dbstat WHERE aggregate = TRUE AND name LIKE 'message_terms%'",
  );
  const size = statSync(path).size;
  const cells = [day, (size / MB).toFixed(1), (free / MB).toFixed(1), ...rows, Math.round(index / 1024)];
  console.log(`| ${cells.join(" | ")} |`);
  return size;
}

await main();
