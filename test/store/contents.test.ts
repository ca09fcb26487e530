import { afterEach, beforeEach, describe, expect } from "bun:test";
import { isBroken } from "../../src/store/engine/guards.ts";
import { reservedBudget } from "../../src/store/contents/memory-budget.ts";
import {
  removeUnusedContents,
  CONTENTS_PER_WRITE,
  CONTENT_WRITES_PER_TURN,
} from "../../src/flows/sweep/removals.ts";
import { CONTENTS } from "../../src/flows/sweep/retention.ts";
import {
  type PrepareDeps,
  prepareContent as keepNewContent,
  writeAhead,
} from "../../src/store/messages/prepare-content.ts";
import type { Db, Statement } from "../../src/store/engine/client.ts";
import { projectKey } from "../../src/store/sql/content-values.ts";
import { DeferredContentValue } from "../../src/store/sql/deferred-content.ts";
import {
  CHUNK_OCTETS,
  chunkCount,
  type HashedContent,
  keyEnd,
  newContent,
  ofProject,
  orderedByTime,
  type ByteSource,
} from "../../src/store/contents/content-bytes.ts";
import {
  CONTENT_COLUMNS,
  contentBytes,
  type Contents,
  contentIn,
  contentPieces,
  type ContentRow,
  type StoredContent,
} from "../../src/store/contents/content-read.ts";
import { movableContents, storedBytes } from "../../src/store/contents/content-objects.ts";
import {
  MAX_CHUNKS_PER_WRITE,
  storeChunks,
  storeContent,
  UNUSED_KEPT_MS,
} from "../../src/store/contents/contents.ts";
import { test } from "../support/engine-test.ts";
import { around } from "../support/around.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { manualClock } from "../support/manual-clock.ts";
import { reason } from "../support/reason.ts";

const SENDER = "snd_of_the_contents";

const NOW = 1_750_000_000_000;
let database: TestDatabase;
let db: Db;
let clock: ReturnType<typeof manualClock>;
beforeEach(async () => {
  database = await testDatabase();
  db = database.db;
  clock = manualClock(NOW);
});
afterEach(() => database.remove());

/** Bytes that do not compress, the same for the same seed. */
function random(octets: number, seed = 1): Uint8Array {
  let state = seed;
  return Uint8Array.from({ length: octets }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state >>> 24;
  });
}
const text = (octets: number): Uint8Array =>
  Buffer.from("A line of text.\r\n".repeat(octets / 17 + 1)).subarray(0, octets);

/** Stores bytes, and computes hashes now that are normally computed where the bytes are stored. */
async function keepContent(deps: PrepareDeps, senderId: string, bytes: ByteSource): Promise<HashedContent> {
  const { key, size, ...kept } = await keepNewContent(deps, senderId, bytes);
  return key instanceof DeferredContentValue
    ? { size, ...key.content.values }
    : ({ key, size, ...kept } as HashedContent);
}

async function stored(key: Uint8Array): Promise<StoredContent | null> {
  const row = await db.first<ContentRow>(`SELECT ${CONTENT_COLUMNS} FROM contents b WHERE key = ?`, [key]);
  return row === null ? null : contentIn(row);
}

async function read(key: Uint8Array, deps: Contents = { db }): Promise<Buffer> {
  const content = await stored(key);
  if (content === null) throw new Error("no such content");
  return Buffer.from(await contentBytes(deps, content, reservedBudget()));
}

const count = async (sql: string): Promise<number> =>
  (await db.first<{ n: number }>(`SELECT ${sql} AS n`))?.n ?? -1;
const refsOf = async (): Promise<number[]> =>
  (await db.all<{ refs: number }>("SELECT refs FROM contents ORDER BY refs")).map(({ refs }) => refs);
const chunks = (): Promise<number> => count("(SELECT count(*) FROM content_chunks)");

/** The database, with an action before each write. */
function before(act: (statements: Statement[]) => Promise<void>): Db {
  return {
    ...around(db),
    async write(statements) {
      await act(statements);
      return db.write(statements);
    },
  };
}

/** Drops a content's reference as the deletion of its owner does. */
function releaseContent(key: Uint8Array, now: number): Statement {
  return { sql: "UPDATE contents SET refs = refs - 1, created_at = ? WHERE key = ?", args: [now, key] };
}

describe("a content reads back unchanged", () => {
  test.each([
    ["nothing", new Uint8Array(), "plain", "row"],
    ["a little text", text(300), "plain", "row"],
    ["text", text(5000), "zstd", "row"],
    ["incompressible bytes", random(5000), "plain", "row"],
    ["as much as a row takes", random(CHUNK_OCTETS), "plain", "row"],
    ["one octet more", random(CHUNK_OCTETS + 1), "plain", "chunks"],
    ["large text", text(5 * CHUNK_OCTETS + 3), "zstd", "chunks"],
    [
      "text with a large incompressible part",
      Buffer.concat([text(CHUNK_OCTETS), random(3 * CHUNK_OCTETS)]),
      "zstd",
      "chunks",
    ],
    ["of exactly some chunks", random(4 * CHUNK_OCTETS), "plain", "chunks"],
  ] as const)("%s", async (_, bytes, encoding, storedIn) => {
    const content = await keepContent({ db, clock }, SENDER, bytes);
    await db.write([storeContent(await keepNewContent({ db, clock }, SENDER, bytes), NOW)]);
    expect(await stored(content.key)).toMatchObject({ size: bytes.length, encoding, storedIn });
    expect((await read(content.key)).equals(bytes)).toBe(true);
    expect(await chunks()).toBe(storedIn === "row" ? 0 : chunkCount(bytes.length));
  });
});

test("a content is stored once, however many rows refer to it", async () => {
  const content = newContent(text(2000));
  for (let times = 0; times < 3; times++) await db.write([storeContent(content, NOW)]);
  expect(await refsOf()).toEqual([3]);
});

test("a small received content has a key in the order of time, by which equal bytes are still found", async () => {
  const content = ofProject(SENDER, newContent(text(2000)));
  const [first, second, last] = [NOW, NOW + 1, NOW + 256 ** 5].map((at) => orderedByTime(content, at));
  await db.write([first, second, second, last].map((one) => storeContent(one ?? content, NOW)));
  const rows = await db.all<{ key: ArrayBuffer; refs: number }>(
    "SELECT key, refs FROM contents ORDER BY key",
  );
  expect(rows.map(({ refs }) => refs)).toEqual([1, 2, 1]);
  const keys = rows.map(({ key }) => Buffer.from(key));
  expect(keys).toEqual([first, second, last].map((one) => Buffer.from(one?.key ?? "")));
  expect(keys.every((key) => key.length === 32 && Buffer.from(keyEnd(key)).equals(keyEnd(content.key)))).toBe(
    true,
  );
  expect((await read(keys[2] ?? content.key)).equals(text(2000))).toBe(true);
});

test("a received content of more than a page, or in chunks, keeps the key of its bytes", () => {
  for (const bytes of [random(5000), random(CHUNK_OCTETS + 1)]) {
    const content = ofProject(SENDER, newContent(bytes));
    expect(orderedByTime(content, NOW).key).toEqual(content.key);
  }
});

test("a large content that is already referred to is not written again", async () => {
  const bytes = random(2 * CHUNK_OCTETS);
  await db.write([storeContent(await keepContent({ db, clock }, SENDER, bytes), NOW)]);
  const writes: number[] = [];
  const watched = before(async (statements) => void writes.push(statements.length));
  await db.write([storeContent(await keepContent({ db: watched, clock }, SENDER, bytes), NOW)]);
  expect(writes).toEqual([]);
  expect(await refsOf()).toEqual([2]);
});

test("a large content is written in pieces, and the write that refers to it contains none of them", async () => {
  const sizes: number[] = [];
  const sizeOf = ({ args }: Statement): number =>
    args.reduce<number>((sum, arg) => sum + (arg instanceof Uint8Array ? arg.length : 0), 0);
  const watched = before(
    async (statements) => void sizes.push(statements.reduce((sum, statement) => sum + sizeOf(statement), 0)),
  );
  const content = await keepContent({ db: watched, clock }, SENDER, random(20 * CHUNK_OCTETS));
  expect(sizes.length).toBe(5);
  expect(Math.max(...sizes)).toBeLessThan(4 * CHUNK_OCTETS + 1000);
  expect(sizeOf(storeContent(content, NOW))).toBe(content.key.length);
});

test("if two writers store one large content at once, it is complete and has two references", async () => {
  const bytes = Buffer.concat([text(3 * CHUNK_OCTETS), random(CHUNK_OCTETS)]);
  const keep = async (): Promise<void> => {
    await db.write([storeContent(await keepContent({ db, clock }, SENDER, bytes), NOW)]);
  };
  await Promise.all([keep(), keep()]);
  expect(await refsOf()).toEqual([2]);
  expect(await chunks()).toBe(4);
  expect((await read(projectKey(SENDER, newContent(bytes).key))).equals(bytes)).toBe(true);
});

describe("the sweep", () => {
  const sweep = (): Promise<void> => removeUnusedContents({ db, clock });

  test("the sweep leaves a content that is written ahead alone for an hour from its last chunk, then removes it", async () => {
    await keepContent({ db, clock }, SENDER, random(3 * CHUNK_OCTETS));
    clock.advance(UNUSED_KEPT_MS);
    await sweep();
    expect(await chunks()).toBe(3);
    clock.advance(1);
    await sweep();
    expect([await refsOf(), await chunks()]).toEqual([[], 0]);
  });

  test("the sweep removes a content an hour after its last reference went, and nothing else", async () => {
    const [small, large, named] = [text(2000), random(2 * CHUNK_OCTETS), random(2 * CHUNK_OCTETS, 7)];
    const [first, second, third] = [
      await keepContent({ db, clock }, SENDER, small),
      await keepContent({ db, clock }, SENDER, large),
      await keepContent({ db, clock }, SENDER, named),
    ];
    await db.write([first, second, third, third].map((content) => storeContent(content, NOW)));
    clock.advance(10 * UNUSED_KEPT_MS);
    await db.write([first, second, third].map(({ key }) => releaseContent(key, clock.now())));
    await sweep();
    expect(await refsOf()).toEqual([0, 0, 1]);
    clock.advance(UNUSED_KEPT_MS + 1);
    await sweep();
    expect(await refsOf()).toEqual([1]);
    expect((await read(third.key)).equals(named)).toBe(true);
    expect(await chunks()).toBe(2);
  });

  /** Stores the given number of unreferenced contents with that many chunks each. If 0, they are in their rows. */
  async function storeUnused(many: number, chunksOfEach = 0): Promise<void> {
    const sql = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
      INSERT INTO contents (key, sender_id, refs, size, encoding, stored_in, created_at, bytes)
      SELECT CAST(i AS BLOB), '', 0, ?, 'plain', ?, ?, x'00' FROM n`;
    const storedIn = chunksOfEach === 0 ? "row" : "chunks";
    await db.write([{ sql, args: [many, chunksOfEach * CHUNK_OCTETS, storedIn, NOW] }]);
    clock.advance(UNUSED_KEPT_MS + 1);
  }

  test("the sweep removes in one turn as many bodies and raw messages as a turn of retention releases, in small writes", async () => {
    await storeUnused(2 * CONTENTS.rows * CONTENTS.pages);
    let largest = 0;
    const watched = before(async ({ length }) => {
      largest = Math.max(largest, length);
    });
    await removeUnusedContents({ db: watched, clock });
    expect([await refsOf(), largest]).toEqual([[], CONTENTS_PER_WRITE]);
  });

  test("handles no more in a turn than its limit", async () => {
    await storeUnused(CONTENTS_PER_WRITE * CONTENT_WRITES_PER_TURN + 1);
    await sweep();
    expect((await refsOf()).length).toBe(1);
  });

  test.each([
    [1, CONTENT_WRITES_PER_TURN * CONTENTS_PER_WRITE],
    [MAX_CHUNKS_PER_WRITE / 4, CONTENT_WRITES_PER_TURN * 4],
    [MAX_CHUNKS_PER_WRITE / 4 + 1, CONTENT_WRITES_PER_TURN * 4],
    [MAX_CHUNKS_PER_WRITE, CONTENT_WRITES_PER_TURN],
  ])(
    "the sweep makes no more writes for contents of %d chunks than for small ones",
    async (chunksOfEach, removed) => {
      await storeUnused(removed + 1, chunksOfEach);
      let writes = 0;
      const watched = before(async () => void writes++);
      await removeUnusedContents({ db: watched, clock });
      expect([(await refsOf()).length, writes]).toEqual([1, CONTENT_WRITES_PER_TURN]);
      await sweep();
      expect(await refsOf()).toEqual([]);
    },
  );

  test.each([
    ["small", text(2000)],
    ["large", random(2 * CHUNK_OCTETS)],
  ])("the sweep keeps a %s content that gets a reference just before", async (_, bytes) => {
    const content = await keepContent({ db, clock }, SENDER, bytes);
    await db.write([storeContent(content, NOW), releaseContent(content.key, NOW)]);
    clock.advance(UNUSED_KEPT_MS + 1);
    const late = before(async () => void (await db.write([storeContent(content, clock.now())])));
    await removeUnusedContents({ db: late, clock });
    expect((await read(content.key)).equals(bytes)).toBe(true);
  });

  test("a write that refers to a removed content fails as a whole, and succeeds when the content is stored again", async () => {
    const bytes = random(2 * CHUNK_OCTETS);
    const content = await keepContent({ db, clock }, SENDER, bytes);
    clock.advance(UNUSED_KEPT_MS + 1);
    await sweep();
    const other = storeContent(newContent(text(100)), NOW);
    const error = await db.write([other, storeContent(content, NOW)]).catch((thrown: unknown) => thrown);
    expect(isBroken(error, "content_gone")).toBe(true);
    expect(await refsOf()).toEqual([]);
    await db.write([other, storeContent(await writeAhead({ db, clock }, content, bytes), NOW)]);
    expect((await read(content.key)).equals(bytes)).toBe(true);
  });

  test("the sweep in the middle of a writer's chunks leaves no orphaned ones", async () => {
    const bytes = random(12 * CHUNK_OCTETS);
    let writes = 0;
    const slow = before(async () => {
      if (writes++ === 1) {
        clock.advance(UNUSED_KEPT_MS + 1);
        await sweep();
      }
    });
    const content = await keepContent({ db: slow, clock }, SENDER, bytes);
    expect(
      await count("(SELECT count(*) FROM content_chunks WHERE key NOT IN (SELECT key FROM contents))"),
    ).toBe(0);
    expect(await chunks()).toBe(8);
    const error = await db.write([storeContent(content, NOW)]).catch((thrown: unknown) => thrown);
    expect(isBroken(error, "content_gone")).toBe(true);
    await db.write([storeContent(await writeAhead({ db, clock }, content, bytes), NOW)]);
    expect((await read(content.key)).equals(bytes)).toBe(true);
  });
});

describe("reading", () => {
  test("a large content is read piece by piece", async () => {
    const bytes = random(6 * CHUNK_OCTETS + 1);
    const { key } = await keepContent({ db, clock }, SENDER, bytes);
    const sizes: number[] = [];
    const content = await stored(key);
    if (content === null) throw new Error("no such content");
    for await (const piece of contentPieces({ db }, content, reservedBudget())) sizes.push(piece.length);
    expect(sizes).toEqual([...Array.from({ length: 6 }, () => CHUNK_OCTETS), 1]);
  });

  test.each([
    ["text, compressed", text(9 * CHUNK_OCTETS)],
    ["incompressible bytes", random(9 * CHUNK_OCTETS)],
  ])("reading continues in the object store if the content moves there meanwhile: %s", async (_, bytes) => {
    const { key } = await keepContent({ db, clock }, SENDER, bytes);
    const content = await stored(key);
    if (content === null) throw new Error("no such content");
    const rows = await db.all<{ bytes: ArrayBuffer }>("SELECT bytes FROM content_chunks ORDER BY ord");
    const object = Buffer.concat(rows.map((row) => new Uint8Array(row.bytes)));
    const objects = { read: async (name: string) => (name === "moved" ? object : new Uint8Array()) };
    const pieces: Uint8Array[] = [];
    for await (const piece of contentPieces({ db, objects }, content, reservedBudget())) {
      pieces.push(piece);
      if (pieces.length > 1) continue;
      await db.write([
        { sql: "UPDATE contents SET stored_in = 'object', object = 'moved' WHERE key = ?", args: [key] },
        { sql: "DELETE FROM content_chunks WHERE key = ?", args: [key] },
      ]);
    }
    expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
    expect((await read(key, { db, objects })).equals(bytes)).toBe(true);
    expect(String(await reason(read(key)))).toContain("none is configured");
  });

  test("reading a content that has lost a chunk fails", async () => {
    const { key } = await keepContent({ db, clock }, SENDER, random(3 * CHUNK_OCTETS));
    await db.write([{ sql: "DELETE FROM content_chunks WHERE ord = 1", args: [] }]);
    expect(String(await reason(read(key)))).toContain("incomplete");
  });

  test.each([
    ["plain", random(3 * CHUNK_OCTETS)],
    ["zstd", text(3 * CHUNK_OCTETS)],
  ] as const)("of an object (%s) that is shorter than stored fails", async (_, bytes) => {
    const { key } = await keepContent({ db, clock }, SENDER, bytes);
    const rows = await db.all<{ bytes: ArrayBuffer }>("SELECT bytes FROM content_chunks ORDER BY ord");
    const cut = Buffer.concat(rows.slice(0, 2).map((row) => new Uint8Array(row.bytes)));
    await db.write([
      { sql: "UPDATE contents SET stored_in = 'object', object = 'moved' WHERE key = ?", args: [key] },
    ]);
    expect(String(await reason(read(key, { db, objects: { read: async () => cut } })))).toContain(
      "incomplete",
    );
  });
});

test("a content that two programs write at once in different encodings never mixes both", async () => {
  const bytes = text(2 * CHUNK_OCTETS);
  const content = ofProject(SENDER, newContent(bytes));
  const chunk = (ord: number) => bytes.slice(ord * CHUNK_OCTETS, (ord + 1) * CHUNK_OCTETS);
  await db.write(storeChunks({ ...content, encoding: "plain" }, 0, [chunk(0)], NOW));
  await db.write(storeChunks({ ...content, encoding: "zstd" }, 1, [Bun.zstdCompressSync(chunk(1))], NOW));
  expect(await chunks()).toBe(1);
  const taken = await db
    .write([storeContent(content, NOW)])
    .catch((error: unknown) => isBroken(error, "content_gone"));
  expect(taken).toBe(true);
  await db.write([storeContent(await keepContent({ db, clock }, SENDER, bytes), NOW)]);
  expect((await read(content.key)).equals(bytes)).toBe(true);
});

test("a content that loses a chunk after it was selected does not move into the object store", async () => {
  const content = await keepContent({ db, clock }, SENDER, random(3 * CHUNK_OCTETS));
  await db.write([storeContent(content, NOW)]);
  const [found] = await movableContents(db, 0, NOW + 1, 10);
  if (found === undefined) throw new Error("nothing to move");
  expect((await storedBytes(db, found, reservedBudget()))?.length).toBe(content.size);
  await db.write([{ sql: "DELETE FROM content_chunks WHERE ord = 2", args: [] }]);
  expect(await storedBytes(db, found, reservedBudget())).toBeNull();
});

test("equal bytes of two projects are two contents, so that one project cannot learn what the other has", async () => {
  const bytes = random(2 * CHUNK_OCTETS);
  const one = await keepContent({ db, clock }, SENDER, bytes);
  await db.write([storeContent(one, NOW)]);
  const other = await keepContent({ db, clock }, "snd_of_another", bytes);
  await db.write([storeContent(other, NOW)]);
  expect(Buffer.from(other.key).equals(one.key)).toBe(false);
  expect(await chunks()).toBe(4);
  expect((await read(other.key)).equals(bytes)).toBe(true);
});
