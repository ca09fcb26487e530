import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createClient } from "@libsql/client";
import { ConstraintError } from "../../src/store/engine/client.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let base: TestDatabase;

beforeEach(async () => {
  base = await testDatabase();
  await base.db.migrate([
    { sql: "CREATE TABLE t (a TEXT PRIMARY KEY, b INTEGER NOT NULL CHECK (b >= 0)) STRICT", args: [] },
  ]);
});

afterEach(() => base.remove());

const put = (a: string, b: number) => ({ sql: "INSERT INTO t (a, b) VALUES (?, ?)", args: [a, b] });
const rows = async () => (await base.db.all<{ a: string }>("SELECT a FROM t ORDER BY a")).map((row) => row.a);

describe("group commit", () => {
  test("a closed database refuses reads and writes, and the process continues", async () => {
    const closed = base;
    const { db } = closed;
    base = await testDatabase();
    await db.close();
    expect(await db.all("SELECT 1").catch(String)).toContain("is closed");
    expect(await db.first("SELECT 1").catch(String)).toContain("is closed");
    expect(await db.write([put("a", 1)]).catch(String)).toContain("is closed");
    await closed.remove();
  });

  test("each writer gets the results of its own statements", async () => {
    const writes = Array.from({ length: 50 }, (_, at) =>
      base.db.write([
        put(`k${at}`, at),
        { sql: "UPDATE t SET b = b + 1 WHERE a = ? RETURNING b", args: [`k${at}`] },
      ]),
    );
    const results = await Promise.all(writes);
    results.forEach((written, at) => {
      expect(written.map((one) => one.changes)).toEqual([1, 1]);
      expect(written[1]?.rows[0]?.b).toBe(at + 1);
    });
  });

  test("only the writer with the broken constraint fails, and nothing of it is stored", async () => {
    const outcomes = await Promise.allSettled([
      base.db.write([put("a", 1)]),
      base.db.write([put("kept?", 1), put("a", 2)]),
      base.db.write([put("b", 1)]),
      base.db.write([put("c", -1)]),
      base.db.write([{ sql: "INSERT INTO nowhere (a) VALUES (1)", args: [] }]),
      base.db.write([put("d", 1)]),
    ]);
    expect(outcomes.map((outcome) => outcome.status)).toEqual([
      "fulfilled",
      "rejected",
      "fulfilled",
      "rejected",
      "rejected",
      "fulfilled",
    ]);
    expect(await rows()).toEqual(["a", "b", "d"]);
  });

  test("a broken constraint names the columns of the unique key", async () => {
    await base.db.write([put("a", 1)]);
    const error = await base.db.write([put("a", 2)]).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ConstraintError);
    expect(error instanceof ConstraintError && error.unique).toBe("t.a");
    const check = await base.db.write([put("z", -1)]).catch((caught: unknown) => caught);
    expect(check instanceof ConstraintError && check.unique).toBeNull();
  });

  test("group commit reads that are asked for together show the same state", async () => {
    await base.db.write([put("a", 0), put("b", 0)]);
    const writer = await base.another();
    const value = async (a: string) =>
      (await base.db.first<{ b: number }>("SELECT b FROM t WHERE a = ?", [a]))?.b;
    let writing = true;
    const writes = (async () => {
      for (let n = 1; n <= 100; n++) await writer.write([{ sql: "UPDATE t SET b = ?", args: [n] }]);
      writing = false;
    })();
    const pairs: (number | undefined)[][] = [];
    while (writing) {
      pairs.push(await Promise.all([value("a"), value("b")]));
      // Reads of a file do not yield to the event loop.
      await Bun.sleep(0);
    }
    await writes;
    await base.caughtUp();
    pairs.push(await Promise.all([value("a"), value("b")]));
    // A replica may sync between two reads.
    const isReplica = base.url.startsWith("file:") && base.writesAt.startsWith("http");
    if (!isReplica) expect(pairs.filter(([a, b]) => a !== b)).toEqual([]);
    expect(pairs.at(-1)).toEqual([100, 100]);
    await writer.close();
  });

  test("of reads requested together, only the wrong one fails", async () => {
    const [sum, wrong, none] = await Promise.allSettled([
      base.db.first("SELECT 1 + 1 AS sum"),
      base.db.all("SELECT x FROM nowhere"),
      base.db.all("SELECT a FROM t"),
    ]);
    expect([sum, none]).toEqual([
      { status: "fulfilled", value: { sum: 2 } },
      { status: "fulfilled", value: [] },
    ]);
    expect(wrong?.status === "rejected" ? String(wrong.reason) : "no error").toContain("no such table");
  });

  test("of many reads requested together, each gets its answer", async () => {
    const asked = Array.from({ length: 100 }, (_, at) =>
      base.db.first<{ at: number }>("SELECT ? + 0 AS at", [at]),
    );
    expect((await Promise.all(asked)).map((row) => row?.at)).toEqual([...Array(100).keys()]);
  });

  test("more statements than one commit takes are all written", async () => {
    await Promise.all(
      Array.from({ length: 30 }, (_, writer) =>
        base.db.write(Array.from({ length: 100 }, (_, at) => put(`${writer}-${at}`, at))),
      ),
    );
    expect((await rows()).length).toBe(3000);
  });

  test("open writes are finished before the database closes", async () => {
    const write = base.db.write([put("last", 1)]);
    await base.db.close();
    await write;
    base.db = await base.reopen();
    expect(await rows()).toEqual(["last"]);
  });

  test("a writer waits while another process holds the lock", async () => {
    const other = anotherClient();
    const transaction = await other.transaction("write");
    await transaction.execute("INSERT INTO t (a, b) VALUES ('other', 1)");
    const write = base.db.write([put("mine", 1)]);
    // The lock is released only after our writer has met it at least once.
    await new Promise<void>((resolve) => setImmediate(() => setImmediate(() => setImmediate(resolve))));
    await transaction.commit();
    await write;
    other.close();
    expect(await rows()).toEqual(["mine", "other"]);
  });
});

/** A client of another program, at the place where writes are carried out. */
function anotherClient() {
  const { writesAt: url, authToken } = base;
  return createClient({ url, concurrency: 1, ...(authToken === null ? {} : { authToken }) });
}

describe("an open file", () => {
  test.each([
    ["journal_mode", "wal"],
    ["synchronous", 2],
    ["foreign_keys", 1],
  ])("an open file has %s = %p", async (name, expected) => {
    const row = await base.db.first<Record<string, unknown>>(`PRAGMA ${name}`);
    expect(row?.[name]).toBe(expected);
  });

  test("readers see the last commit while another process writes", async () => {
    await base.db.write([put("seen", 1)]);
    const other = anotherClient();
    const transaction = await other.transaction("write");
    await transaction.execute("INSERT INTO t (a, b) VALUES ('unseen', 1)");
    expect(await rows()).toEqual(["seen"]);
    await transaction.rollback();
    other.close();
  });
});
