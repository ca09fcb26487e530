import { afterEach, beforeEach, expect, test } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import {
  DueTurns,
  PROJECTS_PER_ROUND,
  ROUNDS_PER_TURN,
  ROWS_PER_ROUND,
} from "../../src/flows/sweep/due-turns.ts";
import type { DueRecipient } from "../../src/store/messages/due-recipients.ts";
import { insertProject } from "../../src/store/projects/projects.ts";
import { testSender } from "../support/api.ts";
import { chanceOf } from "../support/chance.ts";
import { casesHere, type TestDatabase, testDatabase } from "../support/database.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";

const NOW = 1_750_000_000_000;

interface Rows {
  senderId: string;
  bulk?: boolean;
  count: number;
  dueAt?: number;
}

let database: TestDatabase;
let clock: ManualClock;
let messageId: string;
let nextOrd: number;

beforeEach(async () => {
  database = await testDatabase();
  clock = manualClock(NOW);
  messageId = newId("msg", NOW);
  nextOrd = 0;
  const sender = testSender("acc_1", "shop", NOW);
  await database.db.write([
    {
      sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('acc_1', 'a', 'o@x.test', 1)",
      args: [],
    },
    insertProject(sender),
    {
      sql: `INSERT INTO messages (id, sender_id, direction, status, from_email, to_list, subject, created_at)
        VALUES (?, ?, 'outbound', 'queued', 'a@a.test', '[]', 's', ?)`,
      args: [messageId, sender.id, NOW],
    },
  ]);
});
afterEach(() => database.remove());

/** Adds due recipients, one millisecond after another. */
async function add({ senderId, bulk = false, count, dueAt = NOW - 1_000_000 }: Rows): Promise<void> {
  if (count === 0) return;
  const firstOrd = nextOrd;
  nextOrd += count;
  await database.db.write([
    {
      sql: `WITH RECURSIVE k (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM k WHERE n + 1 < ?)
        INSERT INTO recipients (message_id, ord, sender_id, email, domain, kind, bulk, status, due_at)
        SELECT ?, ? + k.n, ?, 'a@in.test', 'in.test', 'to', ?, 'queued', ? + k.n FROM k`,
      args: [count, messageId, firstOrd, senderId, bulk ? 1 : 0, dueAt],
    },
  ]);
}

async function turn(turns: DueTurns): Promise<DueRecipient[]> {
  const read: DueRecipient[] = [];
  await turns.turn(async (due) => void read.push(...due));
  return read;
}

const streamOf = ({ senderId, bulk }: Pick<DueRecipient, "senderId" | "bulk">) => `${senderId} ${bulk}`;

test("a message behind 100,000 due ones of another project, or of its project's campaign, is read in one turn", async () => {
  await add({ senderId: "A", bulk: true, count: 100_000 });
  await add({ senderId: "A", count: 1, dueAt: NOW - 1 });
  await add({ senderId: "B", count: 1, dueAt: NOW - 1 });
  const read = await turn(new DueTurns({ db: database.db, clock }));
  expect(read.filter(({ dueAt }) => dueAt === NOW - 1).map(streamOf)).toEqual(["A false", "B false"]);
  expect(read.length).toBeGreaterThan(ROWS_PER_ROUND * (ROUNDS_PER_TURN - 1));
});

test("the messages of more projects than a round reads are all read in one turn", async () => {
  const projects = 2 * PROJECTS_PER_ROUND + 1;
  await Promise.all(Array.from({ length: projects }, (_, nth) => add({ senderId: `P${nth}`, count: 1 })));
  const turns = new DueTurns({ db: database.db, clock });
  for (let again = 0; again < 2; again++)
    expect(new Set((await turn(turns)).map(streamOf)).size).toBe(projects);
});

test("rows that are not due yet, and those in hand, are not read", async () => {
  await add({ senderId: "A", count: 3, dueAt: NOW - 1 });
  const turns = new DueTurns({ db: database.db, clock });
  expect(await turn(turns)).toHaveLength(2);
  await database.db.write([{ sql: "UPDATE recipients SET due_at = NULL WHERE ord = 0", args: [] }]);
  expect((await turn(turns)).map(({ ord }) => ord)).toEqual([1]);
});

/** Reads random mixes of which a worker takes some after each turn. Returns the faults in the order of reading. */
async function faultsOf(seed: number): Promise<string[]> {
  const chance = chanceOf(seed);
  const faults: string[] = [];
  const projects = Array.from({ length: 1 + chance.below(8) }, (_, nth) => `P${seed}.${nth}`);
  for (const senderId of projects)
    for (const bulk of [false, true])
      await add({ senderId, bulk, count: chance.below(chance.pick([3, 40, 3000])), dueAt: NOW - 10_000 });
  const turns = new DueTurns({ db: database.db, clock });
  const waiting = new Map<number, { stream: string; since: number }>();
  const rowsOf = `SELECT ord, sender_id AS senderId, bulk FROM recipients
    WHERE due_at IS NOT NULL AND sender_id LIKE 'P${seed}.%'`;
  for (let nth = 0; nth < 8; nth++) {
    if (chance.happens(0.5))
      await add({ senderId: chance.pick(["P0", ...projects]), count: 1, dueAt: NOW - 5 });
    const due = await database.db.all<{ ord: number; senderId: string; bulk: number }>(rowsOf, []);
    const read = await turn(turns);
    const streams = new Map<string, DueRecipient[]>();
    for (const row of read) streams.set(streamOf(row), [...(streams.get(streamOf(row)) ?? []), row]);
    for (const { senderId, bulk } of due)
      if (!streams.has(`${senderId} ${bulk === 1}`)) faults.push(`seed ${seed}: ${senderId} ${bulk} starves`);
    for (const [stream, rows] of streams)
      if (rows.some(({ dueAt }, at) => at > 0 && dueAt < (rows[at - 1]?.dueAt ?? 0)))
        faults.push(`seed ${seed}: ${stream} is out of order`);
    const share = ROWS_PER_ROUND / (2 * projects.length + 2);
    for (const { ord, senderId, bulk } of due) {
      const { since } = waiting.get(ord) ?? { since: nth };
      waiting.set(ord, { stream: `${senderId} ${bulk}`, since });
    }
    for (const { ord } of read) waiting.delete(ord);
    for (const { since, stream } of waiting.values())
      if (nth - since > 3000 / share)
        faults.push(`seed ${seed}: a row of ${stream} waits since turn ${since}`);
    const taken = read.filter(() => chance.happens(0.5)).map(({ ord }) => ord);
    await database.db.write([
      {
        sql: "UPDATE recipients SET due_at = NULL WHERE ord IN (SELECT value FROM json_each(?))",
        args: [JSON.stringify(taken)],
      },
    ]);
    clock.advance(1000);
  }
  await database.db.write([{ sql: "DELETE FROM recipients", args: [] }]);
  return [...new Set(faults)];
}

test("in random mixes of due messages each stream is read in each turn, and each row within its share", async () => {
  const faults: string[] = [];
  for (const seed of casesHere([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], 6))
    faults.push(...(await faultsOf(seed)));
  expect(faults.slice(0, 5)).toEqual([]);
});
