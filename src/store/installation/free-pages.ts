import type { Db } from "../engine/client.ts";

/** Share of a file's pages that may be free. They serve the next rows. */
const KEPT_SHARE = 1 / 8;
/** Free pages that are always kept: 16 MiB. */
export const KEPT_PAGES = 4096;

interface Pages {
  free: number;
  all: number;
}

const PAGES =
  "SELECT freelist_count AS free, page_count AS 'all' FROM pragma_freelist_count, pragma_page_count";

/** Returns the number of free pages of the file. */
export async function freePages(db: Db): Promise<number> {
  return (await db.first<Pages>(PAGES))?.free ?? 0;
}

/** Gives back free pages, those that are usually kept as well. Returns their number, at most `most`. */
export async function giveBackAny(db: Db, most: number): Promise<number> {
  const before = await freePages(db);
  if (before > 0) await db.write([{ sql: `PRAGMA incremental_vacuum(${most})`, args: [] }]);
  return Math.min(before, most);
}

/**
 * Gives free pages at most back to the file system in one write. Pages from the end of the file move to free places, and
 * the next checkpoint makes the file shorter (`PRAGMA incremental_vacuum`, https://www.sqlite.org/pragma.html).
 * @param most pages of one write; each may cost a read of the page that refers to it
 * @returns false if no more pages are free than are kept
 */
export async function giveBackPages(db: Db, most: number): Promise<boolean> {
  const pages = await db.first<Pages>(PAGES);
  if (pages === null) return false;
  const spare = pages.free - Math.max(KEPT_PAGES, Math.ceil(pages.all * KEPT_SHARE));
  if (spare <= 0) return false;
  await db.write([{ sql: `PRAGMA incremental_vacuum(${Math.min(most, spare)})`, args: [] }]);
  return true;
}
