import { afterEach, beforeEach, describe, expect } from "bun:test";
import { prepareBody } from "../../src/store/messages/prepare-content.ts";
import { type BodyStart, readBodyStart } from "../../src/store/contents/body-start.ts";
import { CHUNK_OCTETS } from "../../src/store/contents/content-bytes.ts";
import {
  CONTENT_COLUMNS,
  type Contents,
  contentIn,
  type ContentRow,
} from "../../src/store/contents/content-read.ts";
import { budgetOf, type MemoryBudget, waitingBudget } from "../../src/store/contents/memory-budget.ts";
import type { MessageBody } from "../../src/store/contents/message-body.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { test } from "../support/engine-test.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { manualClock } from "../support/manual-clock.ts";
import { reason } from "../support/reason.ts";

const SENDER = "snd_of_the_starts";
/** Bytes of each text that are read. */
const OCTETS = CHUNK_OCTETS;
const LARGE = 5 * CHUNK_OCTETS + 7;

let database: TestDatabase;
let db: Db;
const clock = manualClock();
beforeEach(async () => {
  database = await testDatabase();
  db = database.db;
});
afterEach(() => database.remove());

/** Keeps a content by itself and reads its start. */
async function startOfKept(
  kept: Awaited<ReturnType<typeof prepareBody>>,
  budget: MemoryBudget,
  deps: Contents = { db },
): Promise<BodyStart> {
  const row = await db.first<ContentRow>(`SELECT ${CONTENT_COLUMNS} FROM contents b WHERE size = ?`, [
    kept.size,
  ]);
  const content = row === null ? null : contentIn(row);
  if (content === null) throw new Error("no such content");
  return readBodyStart(deps, content, OCTETS, budget);
}

/** A budget that notes how many bytes each read holds. */
function noted(): { budget: MemoryBudget; reads: number[] } {
  const reads: number[] = [];
  const budget = waitingBudget((octets, read) => {
    reads.push(octets);
    return read();
  });
  return { budget, reads };
}

const lines = (octets: number): string => "A line of text.\r\n".repeat(octets / 17 + 1).slice(0, octets);
const HEADERS = { "Message-ID": "<1@sender.test>" };
const LONG_HEADERS = { "X-Long": "h".repeat(2 * CHUNK_OCTETS) };

const BODIES: [
  what: string,
  body: MessageBody,
  html: [string, boolean] | null,
  text: [string, boolean] | null,
][] = [
  [
    "two large texts",
    { html: lines(LARGE), text: lines(LARGE) },
    [lines(OCTETS), true],
    [lines(OCTETS), true],
  ],
  ["a large text after none", { html: null, text: lines(LARGE) }, null, [lines(OCTETS), true]],
  [
    "a small text after a large one",
    { html: lines(LARGE), text: "end" },
    [lines(OCTETS), true],
    ["end", false],
  ],
  [
    "a text at the limit",
    { html: lines(OCTETS), text: lines(LARGE) },
    [lines(OCTETS), false],
    [lines(OCTETS), true],
  ],
  ["an empty text", { html: "", text: lines(LARGE) }, ["", false], [lines(OCTETS), true]],
  [
    "a character across the limit",
    { html: `${"x".repeat(OCTETS - 1)}é${lines(LARGE)}`, text: null },
    ["x".repeat(OCTETS - 1), true],
    null,
  ],
  [
    "header fields that take several chunks",
    { html: lines(LARGE), text: "end", headers: LONG_HEADERS },
    [lines(OCTETS), true],
    ["end", false],
  ],
];

describe("the start of a body in chunks", () => {
  test.each(BODIES)("with %s is read", async (_, body, html, text) => {
    const kept = await prepareBody({ db, clock }, SENDER, { headers: HEADERS, ...body });
    const start = await startOfKept(kept, noted().budget);
    const clipped = (given: [string, boolean] | null) => ({
      part: given?.[0] ?? null,
      cut: given?.[1] ?? false,
    });
    expect(start).toEqual({ html: clipped(html), text: clipped(text), headers: body.headers ?? HEADERS });
  });

  test("the start of a body in chunks takes no more chunks than have it, however large the body is", async () => {
    const body = { html: lines(40 * CHUNK_OCTETS), text: lines(40 * CHUNK_OCTETS), headers: HEADERS };
    const { budget, reads } = noted();
    await startOfKept(await prepareBody({ db, clock }, SENDER, body), budget);
    expect(Math.max(...reads)).toBeLessThanOrEqual(2 * CHUNK_OCTETS);
    expect(reads.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(6 * CHUNK_OCTETS);
  });

  test("the start of a body in chunks that has moved to the object store is read within a budget for all of it", async () => {
    const kept = await prepareBody({ db, clock }, SENDER, { html: lines(LARGE), text: "end" });
    const rows = await db.all<{ bytes: ArrayBuffer }>("SELECT bytes FROM content_chunks ORDER BY ord");
    const object = Buffer.concat(rows.map(({ bytes }) => new Uint8Array(bytes)));
    await db.write([
      { sql: "UPDATE contents SET stored_in = 'object', object = 'moved'", args: [] },
      { sql: "DELETE FROM content_chunks", args: [] },
    ]);
    const deps = { db, objects: { read: async () => object } };
    expect((await startOfKept(kept, budgetOf(kept.size), deps)).html).toEqual({
      part: lines(OCTETS),
      cut: true,
    });
    const refused = startOfKept(kept, budgetOf(kept.size - 1), deps);
    expect(String(await reason(refused))).toContain("may be read here");
  });
});
