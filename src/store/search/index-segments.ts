import type { Db } from "../engine/client.ts";

/**
 * A level of the search index. FTS5 writes a segment for each commit and merges those of a level into one of the next.
 * The numbers come from its structure record, https://www.sqlite.org/fts5.html#fts5_data_structures.
 */
interface Level {
  pieces: number;
  /** Segments of the level that are being merged. */
  merging: number;
}

/** The row of FTS5's `_data` table with the record. */
const STRUCTURE_ROW = 10;
/** The record begins with a cookie of four bytes, which readers compare. */
const COOKIE_BYTES = 4;
/** More levels than an index of ours can have: the record is damaged, or another SQLite's. */
const MAX_LEVELS = 64;

/** Returns the levels of the index, that of the newest and smallest segments first. */
export async function indexLevels(db: Db): Promise<Level[]> {
  const row = await db.first<{ block: ArrayBuffer }>("SELECT block FROM message_terms_data WHERE id = ?", [
    STRUCTURE_ROW,
  ]);
  if (row === null) return [];
  const next = varints(new Uint8Array(row.block), COOKIE_BYTES);
  const levels = next();
  next(); // Pieces in all.
  next(); // Pages written so far.
  if (levels > MAX_LEVELS) throw new Error(`the search index has ${levels} levels`);
  return Array.from({ length: levels }, () => {
    const merging = next();
    const pieces = next();
    // Each segment has a number, a first page and a last page.
    for (let skipped = 0; skipped < pieces * 3; skipped++) next();
    return { pieces, merging };
  });
}

/**
 * Returns a reader of SQLite's integers of variable length, https://www.sqlite.org/fileformat2.html#varint, of up to
 * 32 bits.
 */
function varints(bytes: Uint8Array, begin: number): () => number {
  let at = begin;
  return () => {
    let value = 0;
    for (;;) {
      const byte = bytes[at++] ?? 0;
      value = value * 128 + (byte & 0x7f);
      if (byte < 0x80) return value;
    }
  };
}

/**
 * Merges segments of one level, about `pages` pages of them in one write, because a search opens each segment for each
 * of its terms. Returns true if there was something to merge.
 */
export async function mergeSegments(db: Db, pages: number): Promise<boolean> {
  const levels = await indexLevels(db);
  if (!levels.some(({ pieces, merging }) => pieces > 1 || merging > 0)) return false;
  await db.write([
    { sql: "INSERT INTO message_terms (message_terms, rank) VALUES ('merge', ?)", args: [pages] },
  ]);
  return true;
}
