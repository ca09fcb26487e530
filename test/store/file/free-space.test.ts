import { afterEach, beforeEach, expect, test } from "bun:test";
import { statSync } from "node:fs";
import Database from "libsql";
import { giveBackSpace } from "../../../src/flows/sweep/removals.ts";
import { databasePath } from "../../../src/store/engine/client.ts";
import { KEPT_PAGES } from "../../../src/store/installation/free-pages.ts";
import { insertListed, type Lists, message, openLists } from "../../support/lists.ts";

/** Bytes of a row that fills about eight pages. */
const ROW_OCTETS = 32_000;
const ROWS = 1500;

let lists: Lists;
let senderId: string;
beforeEach(async () => {
  lists = await openLists();
  senderId = await lists.project();
  await lists.db.migrate([
    { sql: "CREATE TABLE filler (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT", args: [] },
    {
      sql: `WITH RECURSIVE n (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM n WHERE at < ${ROWS})
        INSERT INTO filler SELECT at, zeroblob(${ROW_OCTETS}) FROM n`,
      args: [],
    },
  ]);
});
afterEach(() => lists.remove());

const pages = async (kind: "freelist_count" | "page_count"): Promise<number> => {
  const row = await lists.db.first<{ n: number }>(`SELECT ${kind} AS n FROM pragma_${kind}`);
  return row?.n ?? Number.NaN;
};
/** Returns the size of the file after everything in the WAL has been moved into it. */
const fileSize = (): number => {
  const path = databasePath(lists.url) ?? "";
  const other = new Database(path);
  other.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  other.close();
  return statSync(path).size;
};

test("gives the pages of deleted rows back to the disk while other writes go on", async () => {
  const before = fileSize();
  const last = Array.from({ length: 20 }, () => message(senderId));
  await lists.db.write(last.slice(0, 10).map(insertListed));
  await lists.db.write([{ sql: "DELETE FROM filler", args: [] }]);
  expect(await pages("freelist_count")).toBeGreaterThan(2 * KEPT_PAGES);

  let next = 10;
  for (let turn = 0; turn < 100 && (await pages("freelist_count")) > KEPT_PAGES; turn++) {
    const more = last.slice(next, ++next);
    await Promise.all([giveBackSpace(lists.db), lists.db.write(more.map(insertListed))]);
  }

  expect(await pages("freelist_count")).toBeLessThanOrEqual(KEPT_PAGES);
  expect(fileSize()).toBeLessThan(before / 2);
  const stored = await lists.db.all<{ id: string }>("SELECT id FROM messages ORDER BY id");
  expect(stored.map(({ id }) => id)).toEqual(last.map(({ id }) => id).sort());
  expect(await lists.db.all<object>("PRAGMA integrity_check")).toMatchObject([{ integrity_check: "ok" }]);
});

test("keeps free pages up to 16 MiB for the next rows", async () => {
  await lists.db.write([{ sql: "DELETE FROM filler WHERE id <= 400", args: [] }]);
  const free = await pages("freelist_count");
  expect(free).toBeGreaterThan(1000);

  await giveBackSpace(lists.db);

  expect(await pages("freelist_count")).toBe(free);
});
