/** Fills a database with messages whose bodies are searched. */
import { newId } from "../../src/core/ids.ts";
import { ofProject } from "../../src/store/contents/content-bytes.ts";
import { bodyBytes } from "../../src/store/contents/message-body.ts";
import type { Db, Statement } from "../../src/store/engine/client.ts";
import { insertMessage } from "../../src/store/messages/messages.ts";
import { indexWaiting } from "../../src/store/search/message-index.ts";
import { wordTermsOf } from "../../src/store/search/search-terms.ts";
import { firstPosition } from "../../src/store/search/positions.ts";
import { addWords, newWords, wordProgress } from "../../src/store/search/word-index.ts";
import { digestOf } from "../../src/store/sql/content-values.ts";
import { BEGIN, STEP_MS } from "./fill-lists.ts";
import { listedMessage, PROJECTS } from "./listed-messages.ts";
import { processorTime } from "./processor-time.ts";
import { accountRow, projectRow } from "./projects.ts";

/** Octets of a body. */
export const TEXT_OCTETS = 2048;
/** Messages stored and indexed in one write. */
const PER_WRITE = 250;
/** Messages of one write in the model. */
const PER_MODEL_WRITE = 2500;
/**
 * Of so many writes of the model one has all rows of its messages, and the others have only those of the index. So a page may begin
 * at each multiple of ten writes, and finds more messages than it looks at.
 */
const MODEL_STORES = 10;
/** Different bodies in the model, and words of each that are indexed, the searched ones among them. */
const MODEL_BODIES = 10_000;
const MODEL_WORDS = 20;
/** Octets of terms that FTS5 gathers in the model before it writes them. */
const GATHERED_OCTETS = 16 * 1024 * 1024;
/** Words of the language, of which the n-th is used once where the first is used n times. */
const VOCABULARY = 60_000;
/** One message of the measured project in so many has it. */
const OTHERS = 50;

const SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu".split(" ");

/** Returns a word that only one message of the first `count` has. */
export function wordOfOne(count: number): string {
  return `quixotic${count}`;
}

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

/** Returns words that no other message has. */
function ownWords(): string[] {
  return Array.from({ length: 3 }, () => Math.floor(random() * 1e12).toString(36));
}

function projectOf(at: number): string {
  return PROJECTS[at % OTHERS === 0 ? 1 : 0];
}

/** Returns the body of the `at`-th message, with some words that no other has. */
export function textOf(at: number, more: readonly string[]): string {
  const words = ["everywhere also", at % 2 === 0 ? "even" : "odd", ...ownWords(), ...more];
  if (at % 10 === 3) words.push("tenth");
  if (projectOf(at) !== PROJECTS[0]) words.push("neighbour");
  let text = words.join(" ");
  while (text.length < TEXT_OCTETS) text += ` ${wordAt(Math.floor(VOCABULARY ** random()) - 1)}`;
  return text.slice(0, TEXT_OCTETS);
}

/** The processor time of filling, microseconds. */
export interface Spent {
  store: number;
  index: number;
  words: number;
}

interface Text {
  text: string;
  words: readonly string[];
}

function textFrom(text: string, most?: number): Text {
  return { text, words: [...new Set(text.split(" "))].slice(0, most) };
}

/** Makes messages until there are `size`. Returns the processor time that it took. */
export type FillTo = (size: number) => Promise<Spent>;

/** Makes the projects in an empty database. */
async function makeProjects(db: Db): Promise<void> {
  await db.write([accountRow(), ...PROJECTS.map((id) => projectRow("acc", id))]);
}

/** Fills an empty database with messages, each with its body, as the service stores and indexes them. */
export async function textFiller(db: Db): Promise<FillTo> {
  await makeProjects(db);
  let filled = 0;
  return async (size) => {
    const spent: Spent = { store: 0, index: 0, words: 0 };
    const textAt = (at: number) => textFrom(textOf(at, at === size - 1 ? [wordOfOne(size)] : []));
    for (; filled < size; filled += PER_WRITE) {
      const write = { from: filled, to: Math.min(filled + PER_WRITE, size), size, textAt, spent };
      await storeSome(db, write, () => indexWaiting(db, PER_WRITE));
    }
    filled = size;
    return spent;
  };
}

/**
 * Fills an empty database with the model of many messages. All places are in the index of words, with the terms of their projects,
 * recipients, senders and tags. Its other terms are fewer, messages share bodies, and there is no index of trigrams, which a search by words
 * does not read. Sizes must be multiples of 25 000.
 */
export async function modelFiller(db: Db): Promise<FillTo> {
  await makeProjects(db);
  // A parameter would be a floating-point number, which FTS5 refuses.
  const gather = `INSERT INTO message_words (message_words, rank) VALUES ('hashsize', ${GATHERED_OCTETS})`;
  await db.write([{ sql: gather, args: [] }]);
  const shared = Array.from({ length: MODEL_BODIES }, (_, at) => textFrom(textOf(at, []), MODEL_WORDS));
  let filled = 0;
  return async (size) => {
    const spent: Spent = { store: 0, index: 0, words: 0 };
    const textAt = (at: number) =>
      (at === size - 1 ? undefined : shared[at % MODEL_BODIES]) ??
      textFrom(textOf(at, [wordOfOne(size)]), MODEL_WORDS);
    for (; filled < size; filled += PER_MODEL_WRITE) {
      const write = { from: filled, to: filled + PER_MODEL_WRITE, size, textAt, spent };
      const isStored = (write.to / PER_MODEL_WRITE) % MODEL_STORES === 0;
      if (isStored) await storeSome(db, write, (placed) => db.write([placed]));
      else await timed(spent, "words", () => indexAlone(db, write));
    }
    return spent;
  };
}

interface Filling {
  from: number;
  to: number;
  /** The size at which it will be measured. */
  size: number;
  textAt: (at: number) => Text;
  spent: Spent;
}

async function timed(spent: Spent, part: keyof Spent, work: () => Promise<unknown>): Promise<void> {
  spent[part] += await processorTime(work);
}

/** Stores messages and adds them to the index of words. @param place gives them places, for which it gets a statement */
async function storeSome(
  db: Db,
  { from, to, size, textAt, spent }: Filling,
  place: (placed: Statement) => Promise<unknown>,
): Promise<void> {
  const words = new Map<string, readonly string[]>();
  const statements: Statement[] = [];
  const positions: [id: string, position: number][] = [];
  for (let at = from; at < to; at++) {
    const [project, time, text] = [projectOf(at), BEGIN + at * STEP_MS, textAt(at)];
    const id = newId("msg", time);
    const bytes = bodyBytes({ text: text.text, html: null });
    const body = { key: digestOf(bytes), size: bytes.length, encoding: "plain" as const, bytes };
    words.set(id, text.words);
    positions.push([id, firstPosition(time)]);
    const message = listedMessage(project, id, time, at, size);
    statements.push(...insertMessage(message, { body: ofProject(project, body) }, []));
  }
  const placed = {
    sql: "UPDATE messages SET position = value ->> 1 FROM json_each(?) WHERE messages.id = value ->> 0",
    args: [JSON.stringify(positions)],
  };
  await timed(spent, "store", () => db.write(statements));
  await timed(spent, "index", () => place(placed));
  await timed(spent, "words", async () => {
    const waiting = await newWords(db, to - from);
    const wordsOf = waiting.rows.map(({ id }) => words.get(id) ?? []);
    await addWords(db, waiting, wordsOf);
  });
}

/** Gives places to messages that are not stored, and adds them to the index of words. */
async function indexAlone(db: Db, { from, to, size, textAt }: Filling): Promise<void> {
  const { newest } = await wordProgress(db);
  const entries: [place: number, terms: string, position: number][] = [];
  for (let at = to - 1; at >= from; at--) {
    const time = BEGIN + at * STEP_MS;
    const message = listedMessage(projectOf(at), newId("msg", time), time, at, size);
    entries.push([
      newest - 1 - (at - from),
      wordTermsOf(message, textAt(at).words, false),
      firstPosition(time),
    ]);
  }
  const given = JSON.stringify(entries);
  const last = newest - (to - from);
  await db.write([
    {
      sql: "UPDATE word_progress SET newest = ?, indexed = ?, highest = ?",
      args: [last, last, entries[0]?.[2] ?? 0],
    },
    {
      sql: "INSERT INTO word_places (place, position) SELECT value ->> 0, value ->> 2 FROM json_each(?)",
      args: [given],
    },
    {
      sql: "INSERT OR REPLACE INTO message_words (rowid, terms) SELECT value ->> 0, value ->> 1 FROM json_each(?)",
      args: [given],
    },
  ]);
}
