/**
 * Measures `text=` of `GET /v1/emails` with a million messages of 2 KB: `bun bench/text-search.ts [--many=N] [--up-to=N] [--model]
 * [--keep=FOLDER] [--json=FILE]`. A customer with years of mail would notice a slow search first. Times are processor time, because
 * others may use the machine; the floor is a page of the list without a search. With `--up-to` it continues with larger sizes, each
 * twice the one before. With `--model` it stores only what those searches read: ten million messages take 8 GB.
 */
import { join } from "node:path";
import { systemClock } from "../src/clock.ts";
import { findMessages } from "../src/flows/search/find-messages.ts";
import { openDb } from "../src/store/engine/client.ts";
import { migrate } from "../src/store/engine/migrate.ts";
import type { MessageFilter } from "../src/store/lists/message-filter.ts";
import { listMessages } from "../src/store/lists/message-list.ts";
import { mergeSegments } from "../src/store/search/message-index.ts";
import { textQuery } from "../src/store/search/text-query.ts";
import { handOver } from "./support/figures.ts";
import { BEGIN, STEP_MS } from "./support/fill-lists.ts";
import { benchFolder } from "./support/folder.ts";
import { PROJECTS } from "./support/listed-messages.ts";
import { flag, keptFolder, numberOption } from "./support/options.ts";
import { processorTime } from "./support/processor-time.ts";
import { modelFiller, type Spent, TEXT_OCTETS, textFiller, wordOfOne } from "./support/searched-texts.ts";
import { median } from "./support/table.ts";

const MANY = numberOption("many", 1_000_000);
const UP_TO = numberOption("up-to", MANY);
const IS_MODEL = flag("model");
const PAGE_ROWS = 21;
const SAMPLES = 100;
const WARM_UP = 6;
const PAGES_PER_MERGE = 1000;
const [PROJECT] = PROJECTS;

const casesOf = (size: number): readonly [name: string, text: string, filter?: MessageFilter][] => [
  ["a word of all", "everywhere"],
  ["a word of 1 in 10", "tenth"],
  ["a word of one", wordOfOne(size)],
  ["a word of none", "nowhere"],
  ["another project's word", "neighbour"],
  ["two words of all", "everywhere also"],
  ["a word of all, one of 1 in 10", "everywhere tenth"],
  ["two words of half, never together", "even odd"],
  ["a word of all, one of none", "everywhere nowhere"],
  ["a word of all, a recipient of one", "everywhere", { to: "user22521@d21.example" }],
  ["a word of all, a status of three", "everywhere", { status: "complained" }],
  ["a word of all, before the middle", "everywhere", { before: BEGIN + (size * STEP_MS) / 2 }],
];

/** Returns the processor times of a search, in milliseconds, rising. */
async function times(work: (sample: number) => Promise<unknown>): Promise<number[]> {
  const found: number[] = [];
  for (let sample = -WARM_UP; sample < SAMPLES; sample++) {
    const spent = await processorTime(() => work(sample));
    if (sample >= 0) found.push(spent / 1000);
  }
  return found.sort((a, b) => a - b);
}

/** Returns the size of the index, in percent of the bodies. */
async function shareOf(size: number): Promise<number> {
  const names = await db.all<{ name: string }>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name LIKE 'message\\_words\\_%' ESCAPE '\\' OR name = 'word_places')",
  );
  let bytes = 0;
  for (const { name } of names) {
    const row = await db.first<{ bytes: number | null }>(
      "SELECT sum(pgsize) AS bytes FROM dbstat WHERE aggregate = TRUE AND name = ?",
      [name],
    );
    bytes += row?.bytes ?? 0;
  }
  return (100 * bytes) / (size * TEXT_OCTETS);
}

async function measure(size: number, spent: Spent): Promise<Record<string, Record<string, number>>> {
  const each = Object.entries(spent).map(([part, time]) => `${part} ${(time / 1e6).toFixed(0)} s`);
  const share = await shareOf(size);
  console.log(`\n${size} messages; processor time to get there: ${each.join(", ")}`);
  console.log(
    `The index of words has ${share.toFixed(1)} % of the bodies${IS_MODEL ? ", but not all of its terms" : ""}.`,
  );
  const floor = await times(() => listMessages(db, PROJECT, {}, null, PAGE_ROWS));
  const figures: Record<string, Record<string, number>> = { index: { "share %": share } };
  console.log(
    "| search | p10 ms | p50 ms | p99 ms | times the list | found |\n| --- | --- | --- | --- | --- | --- |",
  );
  const newest = await db.first<{ place: number }>("SELECT min(place) AS place FROM word_places");
  for (const [name, text, filter = {}] of casesOf(size)) {
    const search = { senderId: PROJECT, filter, query: textQuery(text) };
    // Every second sample is a page from anywhere.
    const from = (sample: number): number | null =>
      sample % 2 === 0 ? null : (newest?.place ?? 0) + Math.floor((Math.abs(sample) / SAMPLES) * size);
    const found = await times((sample) => findMessages({ db }, search, from(sample), PAGE_ROWS));
    const [p10, p99] = [0.1, 0.99].map((part) => found[Math.ceil(found.length * part) - 1] ?? 0) as [
      number,
      number,
    ];
    const { messages } = await findMessages({ db }, search, null, PAGE_ROWS);
    figures[name] = { messages: size, "p10 ms": p10, "p50 ms": median(found), "p99 ms": p99 };
    const shown = [p10, median(found), p99].map((ms) => ms.toFixed(2));
    const cells = [name, ...shown, (median(found) / median(floor)).toFixed(1)];
    console.log(`| ${cells.join(" | ")} | ${messages.length} |`);
  }
  return figures;
}

const path = join(keptFolder() ?? benchFolder(), `texts-${UP_TO}.db`);
const db = await openDb(systemClock, { url: `file:${path}`, authToken: null, syncUrl: null });
await migrate(db, BEGIN);
const fillTo = await (IS_MODEL ? modelFiller : textFiller)(db);
let figures: Record<string, Record<string, number>> = {};
for (let size = MANY; ; size = Math.min(2 * size, UP_TO)) {
  const spent = await fillTo(size);
  // Work that the service does in quiet moments.
  while (await mergeSegments(db, PAGES_PER_MERGE, "message_words"));
  figures = await measure(size, spent);
  if (size === UP_TO) break;
}
await db.close();
handOver(figures);
