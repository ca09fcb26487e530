import type { Db } from "../engine/client.ts";

/**
 * The pieces that the search index consists of, by level: FTS5 writes one for each commit and merges those of a level
 * into one of the next. Read from its structure record, https://www.sqlite.org/fts5.html#fts5_data_structures.
 */
interface Level {
  pieces: number;
  /** Pieces of it that are being merged. */
  merging: number;
}

/** Where FTS5 keeps the record in its `_data` table. */
const STRUCTURE_ROW = 10;
/** The record begins with a cookie of four bytes, which readers compare. */
const COOKIE_BYTES = 4;
/** A level as no index of ours can have it: the record is not one, or another SQLite's. */
const MAX_LEVELS = 64;

/** The levels of the index, that of the newest and smallest pieces first. */
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
    // Of each piece its number, its first page and its last.
    for (let skipped = 0; skipped < pieces * 3; skipped++) next();
    return { pieces, merging };
  });
}

/** Reads SQLite's integers of variable length, https://www.sqlite.org/fileformat2.html#varint, of up to 32 bits. */
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
 * Merges pieces of the index that are of one size, about `pages` pages of them in one write: a search opens each piece
 * for each of its terms. Says whether there was something to merge.
 */
export async function mergePieces(db: Db, pages: number): Promise<boolean> {
  const levels = await indexLevels(db);
  if (!levels.some(({ pieces, merging }) => pieces > 1 || merging > 0)) return false;
  await db.write([
    { sql: "INSERT INTO message_terms (message_terms, rank) VALUES ('merge', ?)", args: [pages] },
  ]);
  return true;
}
