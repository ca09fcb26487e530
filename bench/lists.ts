/**
 * Measures `GET /v1/emails` with a million messages and with ten thousand: `bun bench/lists.ts [--only=NAME]
 * [--keep=FOLDER] [--many=N] [--json=FILE]`.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../src/clock.ts";
import { newId } from "../src/core/ids.ts";
import { type Db, openDb } from "../src/store/engine/client.ts";
import { listMessages, type MessageFilter } from "../src/store/lists/message-list.ts";
import { migrate } from "../src/store/engine/migrate.ts";
import { around } from "../test/support/around.ts";
import { handOver } from "./support/figures.ts";
import { BEGIN, fillLists, STEP_MS } from "./support/fill-lists.ts";
import { benchFolder } from "./support/folder.ts";
import { PROJECTS, RARE, THEIRS } from "./support/listed-messages.ts";
import { chosen, keptFolder, numberOption } from "./support/options.ts";
import { accountRow } from "./support/projects.ts";
import { median } from "./support/table.ts";

const FEW = 10_000;
const MANY = numberOption("many", 1_000_000);
const PAGE_ROWS = 50;
const SAMPLES = 100;
const WARM = 5;
/** Time limit for the samples of one case. */
const CASE_LIMIT_MS = 3000;

const [PROJECT] = PROJECTS;
const hour = 3_600_000;
const cases = (count: number): readonly (readonly [name: string, filter: MessageFilter])[] => {
  const middle = BEGIN + (count * STEP_MS) / 2;
  return [
    ["unfiltered", {}],
    ["status, 9 of 10", { status: "delivered" }],
    ["status, three", { status: "complained" }],
    ["status, none", { status: "rendering_failure" }],
    ["direction, all", { direction: "outbound" }],
    ["direction, none", { direction: "inbound" }],
    ["from, 1 of 10", { from: "sender3@shop.example" }],
    ["from, three", { from: RARE.from }],
    ["from, none", { from: "sender@shop.example" }],
    ["to, 1 of 10", { to: "everyone@list.example" }],
    ["to, one", { to: "user4321@d21.example" }],
    ["to, none", { to: "user@d21.example" }],
    ["tag, 1 of 2", { tag: { name: "campaign", value: "spring" } }],
    ["tag, three", { tag: RARE.tag }],
    ["tag, none", { tag: { name: "campaign", value: "none" } }],
    ["after", { after: middle }],
    ["before", { before: middle }],
    ["after and before", { after: middle, before: middle + hour }],
    ["q, all", { q: "example" }],
    ["q, 1 of 12", { q: "INVOICE" }],
    ["q, three", { q: RARE.word }],
    ["q, one", { q: "user4321@d21" }],
    ["q, none", { q: "zyxwvu" }],
    ["q, none, its parts everywhere", { q: "example.shop" }],
    ["q, another project's", { q: THEIRS }],
    ["q of 2, all", { q: "ex" }],
    ["q of 2, none", { q: "zq" }],
    ["q all, status three", { q: "example", status: "complained" }],
    ["q all, tag three", { q: "example", tag: RARE.tag }],
    ["q all, direction none", { q: "example", direction: "inbound" }],
    ["q three, status 9 of 10", { q: RARE.word, status: "delivered" }],
    [
      "q 1 of 12, from 1 of 10, tag 1 of 2",
      { q: "invoice", from: "sender3@shop.example", tag: { name: "campaign", value: "spring" } },
    ],
    ["to 1 of 10, after and before", { to: "everyone@list.example", after: middle, before: middle + hour }],
    ["from 1 of 10, status 1 of 10", { from: "sender3@shop.example", status: "bounced" }],
  ];
};

const home = keptFolder() ?? benchFolder();

async function filled(count: number): Promise<Db> {
  const path = join(home, `${count}.db`);
  const found = existsSync(path);
  const db = await openDb(systemClock, { url: `file:${path}`, authToken: null, syncUrl: null });
  await migrate(db, BEGIN);
  if (!found) await fill(db, count);
  const size = await db.first<{ bytes: number }>(
    "SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size",
  );
  const megabytes = (size?.bytes ?? 0) / 2 ** 20;
  const index = await db.first<{ bytes: number }>(
    "SELECT sum(pgsize) AS bytes FROM dbstat WHERE aggregate = TRUE AND name LIKE 'message_terms%'",
  );
  const each = ((index?.bytes ?? 0) / count).toFixed(0);
  console.log(`${count} messages: ${megabytes.toFixed(0)} MB, the search index ${each} octets a message`);
  return db;
}

async function fill(db: Db, count: number): Promise<void> {
  await db.write([accountRow()]);
  await fillLists(db, "acc", count);
}

interface Times {
  p50: number;
  p99: number;
}

function timesOf(samples: number[]): Times {
  const sorted = samples.toSorted((a, b) => a - b);
  return { p50: median(sorted), p99: sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0 };
}

/** First pages, or pages from anywhere in the project's time. */
async function measured(db: Db, filter: MessageFilter, count: number, deep: boolean): Promise<Times> {
  const samples: number[] = [];
  const until = performance.now() + CASE_LIMIT_MS;
  for (let sample = -WARM; sample < SAMPLES && performance.now() < until; sample++) {
    // Samples the whole time range, in an order that jumps.
    const part = ((sample + WARM) * 37) % (SAMPLES + WARM);
    const before = deep
      ? newId("msg", BEGIN + Math.floor((part / (SAMPLES + WARM)) * count * STEP_MS))
      : null;
    const began = performance.now();
    await listMessages(db, PROJECT, filter, before, PAGE_ROWS);
    if (sample >= 0) samples.push(performance.now() - began);
  }
  return timesOf(samples);
}

/** Returns the parts of a list's query plans that grow with the table: a full scan or a sort. */
async function planProblems(db: Db, filter: MessageFilter): Promise<string[]> {
  const problems: string[] = [];
  const explain = async (sql: string, args: Parameters<Db["all"]>[1]): Promise<void> => {
    const steps = await db.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, args);
    for (const { detail } of steps)
      if (/SCAN (?:m|messages)\b|TEMP B-TREE|AUTOMATIC/.test(detail)) problems.push(detail);
  };
  const watched: Db = {
    ...around(db),
    async all<Row>(sql: string, args?: Parameters<Db["all"]>[1]) {
      await explain(sql, args);
      return db.all<Row>(sql, args);
    },
    async first<Row>(sql: string, args?: Parameters<Db["first"]>[1]) {
      await explain(sql, args);
      return db.first<Row>(sql, args);
    },
  };
  await listMessages(watched, PROJECT, filter, newId("msg", BEGIN + 1000 * STEP_MS), PAGE_ROWS);
  return problems;
}

const few = await filled(FEW);
const many = await filled(MANY);
const ms = (value: number): string => value.toFixed(value < 10 ? 2 : 1);
const heads = ["", "first p50", "p99", "at 10 000", "times", "deep p50", "p99", "at 10 000", "times", "rows"];
for (const cells of [heads, heads.map(() => "---")]) console.log(`| ${cells.join(" | ")} |`);
const problems: string[] = [];
const figures: Record<string, Record<string, number>> = {};
const smallCases = new Map(cases(FEW));
for (const [name, filter] of chosen(cases(MANY))) {
  const cells = [name];
  for (const deep of [false, true]) {
    const small = await measured(few, smallCases.get(name) ?? filter, FEW, deep);
    const big = await measured(many, filter, MANY, deep);
    figures[`${deep ? "deep" : "first"}, ${name}`] = {
      messages: MANY,
      "p50 ms": big.p50,
      "p99 ms": big.p99,
      beside: FEW,
      "p50 ms beside": small.p50,
    };
    cells.push(
      ms(big.p50),
      ms(big.p99),
      `${ms(small.p50)} / ${ms(small.p99)}`,
      (big.p50 / small.p50).toFixed(1),
    );
  }
  cells.push(String((await listMessages(many, PROJECT, filter, null, PAGE_ROWS)).messages.length));
  console.log(`| ${cells.join(" | ")} |`);
  for (const problem of await planProblems(many, filter)) problems.push(`${name}: ${problem}`);
}
console.log(
  problems.length === 0 ? "No plan scans or sorts." : `Plans that scan or sort:\n${problems.join("\n")}`,
);
await few.close();
await many.close();
handOver(figures);
