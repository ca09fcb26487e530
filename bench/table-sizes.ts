/**
 * Shows the bytes per message of each table and index: `bun bench/table-sizes.ts [--messages=N] [--keep=FOLDER]
 * [--json=FILE]`.
 */
import { join } from "node:path";
import Database from "libsql";
import { systemClock } from "../src/clock.ts";
import { indexMessages, MESSAGES_PER_TURN } from "../src/flows/sweep/index-messages.ts";
import { openDb } from "../src/store/engine/client.ts";
import { handOver } from "./support/figures.ts";
import { benchFolder } from "./support/folder.ts";
import { storeMany } from "./support/many-messages.ts";
import { keptFolder, numberOption } from "./support/options.ts";

const MB = 1024 * 1024;

const messages = numberOption("messages", 1_000_000);
const path = join(keptFolder() ?? benchFolder(), "postrider.db");

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

await storeMany(path, messages);
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
