/**
 * Measures `text=` of `GET /v1/emails` with a million messages of 2 KB: `bun bench/text-search.ts [--many=N] [--keep=FOLDER]
 * [--json=FILE]`. A customer with years of mail would notice a slow search first. Times are processor time, because others may use
 * the machine; the floor is a page of the list without a search.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../src/clock.ts";
import { newId } from "../src/core/ids.ts";
import { findMessages } from "../src/flows/search/find-messages.ts";
import { digestOf } from "../src/store/sql/content-values.ts";
import { ofProject } from "../src/store/contents/content-bytes.ts";
import { bodyBytes } from "../src/store/contents/message-body.ts";
import { type Db, openDb, type Statement } from "../src/store/engine/client.ts";
import { migrate } from "../src/store/engine/migrate.ts";
import { listMessages } from "../src/store/lists/message-list.ts";
import type { MessageFilter } from "../src/store/lists/message-filter.ts";
import { insertMessage } from "../src/store/messages/messages.ts";
import { indexWaiting, mergeSegments } from "../src/store/search/message-index.ts";
import { textQuery } from "../src/store/search/text-query.ts";
import { addWords, newWords } from "../src/store/search/word-index.ts";
import { handOver } from "./support/figures.ts";
import { BEGIN, STEP_MS } from "./support/fill-lists.ts";
import { benchFolder } from "./support/folder.ts";
import { listedMessage, PROJECTS } from "./support/listed-messages.ts";
import { keptFolder, numberOption } from "./support/options.ts";
import { median } from "./support/table.ts";

const MANY = numberOption("many", 1_000_000);
const TEXT_OCTETS = 2048;
const PER_WRITE = 250;
const PAGE_ROWS = 21;
const SAMPLES = 60;
/** Words of the language, of which the n-th is used once where the first is used n times. */
const VOCABULARY = 60_000;
const [PROJECT] = PROJECTS;

const SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu".split(" ");
const CASES: readonly [name: string, text: string, filter?: MessageFilter][] = [
  ["a word of all", "everywhere"],
  ["a word of 1 in 10", "tenth"],
  ["a word of one", "quixotic"],
  ["a word of none", "nowhere"],
  ["another project's word", "neighbour"],
  ["two words of all", "everywhere also"],
  ["a word of all, one of 1 in 10", "everywhere tenth"],
  ["two words of half, never together", "even odd"],
  ["a word of all, one of none", "everywhere nowhere"],
  ["a word of all, a recipient of one", "everywhere", { to: "user4321@d21.example" }],
  ["a word of all, a status of three", "everywhere", { status: "complained" }],
  ["a word of all, before the middle", "everywhere", { before: BEGIN + (MANY * STEP_MS) / 2 }],
];

function wordAt(rank: number): string {
  let word = "";
  for (let left = rank + 20; left > 0; left = Math.floor(left / 20)) word += SYLLABLES[left % 20];
  return word;
}

let seed = 1;
function random(): number {
  seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
  return (seed >>> 8) / 2 ** 24;
}

/** Returns a string of the size, with some words that no other has. */
function textOf(at: number, count: number, project: string): string {
  const unique = () => Math.floor(random() * 1e12).toString(36);
  const words = ["everywhere also", at % 2 === 0 ? "even" : "odd", unique(), unique(), unique()];
  if (at % 10 === 3) words.push("tenth");
  if (project !== PROJECT) words.push("neighbour");
  else if (at === count - 1) words.push("quixotic");
  let text = words.join(" ");
  while (text.length < TEXT_OCTETS) text += ` ${wordAt(Math.floor(VOCABULARY ** random()) - 1)}`;
  return text.slice(0, TEXT_OCTETS);
}

async function fill(db: Db, count: number): Promise<void> {
  await db.write([
    {
      sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc', 'a', 'a@a.example', 0)",
      args: [],
    },
    ...PROJECTS.map((id) => ({
      sql: `INSERT INTO senders (id, account_id, external_id, name, plan, trust_tier, created_at)
        VALUES (?, 'acc', ?, 'p', 'unlimited', 'unlimited', 0)`,
      args: [id, id],
    })),
  ]);
  const spent = { store: 0, index: 0, words: 0 };
  const timed = async (part: keyof typeof spent, work: () => Promise<unknown>): Promise<void> => {
    const before = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(before);
    spent[part] += user + system;
  };
  for (let at = 0; at < count; at += PER_WRITE) {
    const texts = new Map<string, string>();
    const statements: Statement[] = [];
    for (let one = at; one < at + PER_WRITE; one++) {
      const project = PROJECTS[one % 50 === 0 ? 1 : 0];
      const time = BEGIN + one * STEP_MS;
      const id = newId("msg", time);
      const text = textOf(one, count, project);
      const bytes = bodyBytes({ text, html: null });
      const body = { key: digestOf(bytes), size: bytes.length, encoding: "plain" as const, bytes };
      texts.set(id, text);
      const message = listedMessage(project, id, time, one, count);
      statements.push(...insertMessage(message, { body: ofProject(project, body) }, []));
    }
    await timed("store", () => db.write(statements));
    await timed("index", () => indexWaiting(db, PER_WRITE));
    await timed("words", async () => {
      const waiting = await newWords(db, PER_WRITE);
      const words = waiting.rows.map(({ id }) => new Set(texts.get(id)?.split(" ")));
      await addWords(db, waiting, words);
    });
    if (at % 50_000 === 0) console.error(`${at} messages`);
  }
  const each = Object.entries(spent).map(([part, time]) => `${part} ${(time / count).toFixed(0)} µs`);
  console.log(`${count} messages, processor time of each: ${each.join(", ")}`);
}

/** Returns the processor times of a search, in milliseconds, rising. */
async function times(work: (sample: number) => Promise<unknown>): Promise<number[]> {
  const found: number[] = [];
  for (let sample = -3; sample < SAMPLES; sample++) {
    const before = process.cpuUsage();
    await work(sample);
    const { user, system } = process.cpuUsage(before);
    if (sample >= 0) found.push((user + system) / 1000);
  }
  return found.sort((a, b) => a - b);
}

const path = join(keptFolder() ?? benchFolder(), `texts-${MANY}.db`);
const isFilled = existsSync(path);
const db = await openDb(systemClock, { url: `file:${path}`, authToken: null, syncUrl: null });
await migrate(db, BEGIN);
if (!isFilled) await fill(db, MANY);
// Work that the service does in quiet moments.
while (await mergeSegments(db, 1000, "message_words"));
const sizes = await db.all<{ name: string; bytes: number }>(
  `SELECT name, sum(pgsize) AS bytes FROM dbstat WHERE aggregate = TRUE
    AND (name LIKE 'message_words%' OR name = 'word_places') GROUP BY name`,
);
const share = (100 * sizes.reduce((sum, { bytes }) => sum + bytes, 0)) / (MANY * TEXT_OCTETS);
console.log(`The index of words has ${share.toFixed(1)} % of the texts.`);
const floor = await times(() => listMessages(db, PROJECT, {}, null, PAGE_ROWS));
const figures: Record<string, Record<string, number>> = {};
console.log("| search | p50 ms | p99 ms | times the list | found |\n| --- | --- | --- | --- | --- |");
for (const [name, text, filter = {}] of CASES) {
  const search = { senderId: PROJECT, filter, query: textQuery(text) };
  const newest = await db.first<{ place: number }>("SELECT min(place) AS place FROM word_places");
  // Every second sample is a page from anywhere.
  const from = (sample: number): number | null =>
    sample % 2 === 0 ? null : (newest?.place ?? 0) + Math.floor((Math.abs(sample) / SAMPLES) * MANY);
  const found = await times((sample) => findMessages({ db }, search, from(sample), PAGE_ROWS));
  const p99 = found[Math.ceil(found.length * 0.99) - 1] ?? 0;
  const { messages } = await findMessages({ db }, search, null, PAGE_ROWS);
  figures[name] = { messages: MANY, "p50 ms": median(found), "p99 ms": p99 };
  const cells = [name, median(found).toFixed(2), p99.toFixed(2), (median(found) / median(floor)).toFixed(1)];
  console.log(`| ${cells.join(" | ")} | ${messages.length} |`);
}
await db.close();
handOver({ ...figures, index: { "share %": share } });
