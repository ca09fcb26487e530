import { HOUR_MS } from "../../core/time-units.ts";
import { chunkCount, type HashedContent, type NewContent } from "./content-bytes.ts";
import type { ContentEncoding } from "../engine/content-values.ts";
import { ConstraintError, type Db, type Guard, type Statement } from "../engine/client.ts";
import { rowsStatement, rowsText } from "../engine/rows-text.ts";

/**
 * Time that a content nobody names is kept, from its last chunk or from the moment when it was let go of. A writer that
 * has found it there, or has written it ahead, commits long before.
 */
export const UNUSED_KEPT_MS = HOUR_MS;

/** What is known of a content that was written ahead: NULL where it is not there with all its chunks. */
const REFS_AHEAD = `(SELECT refs FROM contents WHERE key = ?1
  AND (place <> 'chunks' OR (SELECT count(*) FROM content_chunks WHERE key = ?1) = ?6))`;

const COLUMNS_STORED = "key, refs, size, encoding, place, created_at, bytes";
const OR_NAME_ONCE_MORE = " ON CONFLICT (key) DO UPDATE SET refs = refs + 1";

/** Of a content in its row, as most are. */
const IN_ROW = "?1, 1, ?2, ?3, ?4, ?5, ?6";
const TAKE = rowsText("contents", COLUMNS_STORED, `(${IN_ROW})`, { after: OR_NAME_ONCE_MORE });
/** Of one that was written ahead. The column takes no NULL. */
const AHEAD = `?1, ${REFS_AHEAD}, ?2, ?3, ?4, ?5, NULL`;
const TAKE_AHEAD = rowsText("contents", COLUMNS_STORED, `(${AHEAD})`, {
  after: OR_NAME_ONCE_MORE,
  repeats: false,
});

function guardedText(ahead: boolean, guard: Guard): string {
  const values = ahead ? AHEAD : IN_ROW;
  return `INSERT INTO contents (${COLUMNS_STORED}) SELECT ${values} WHERE ${guard.sql}${OR_NAME_ONCE_MORE}`;
}

/**
 * The statement by which a write takes a content up: it is stored where it is not there, and named once more. One that
 * was written ahead has to be there as a whole; where the sweep was faster the write fails, and `isContentGone` tells so.
 * @param now milliseconds
 * @param guard a further condition, with `?` alone for its parameters; where it does not hold nothing is taken up
 */
export function takeContent(content: NewContent, now: number, guard?: Guard): Statement {
  const { key, size, encoding, bytes } = content;
  const ahead = bytes === null;
  const args = [key, size, encoding, ahead ? "chunks" : "row", now, ahead ? chunkCount(size) : bytes];
  return guard === undefined
    ? rowsStatement(ahead ? TAKE_AHEAD : TAKE, args)
    : { sql: guardedText(ahead, guard), args: [...args, ...guard.args] };
}

/** Whether it is written ahead of the write that takes it up. */
export function isAhead(content: NewContent): content is HashedContent {
  return content.bytes === null;
}

/** The condition that a large content is there as a whole, for writes that are to go on without it where it is not. */
export function wholeGuard({ key, size }: HashedContent): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM contents WHERE key = ?
      AND (place <> 'chunks' OR (SELECT count(*) FROM content_chunks WHERE key = ?) = ?))`,
    args: [key, key, chunkCount(size)],
  };
}

/** Whether a write failed because a content that it takes up, written ahead of it, was gone. */
export function isContentGone(error: unknown): boolean {
  return error instanceof ConstraintError && error.notNull === "contents.refs";
}

/** How a content of that key stands in the store; null where it does not. */
export async function findContent(
  db: Db,
  key: Uint8Array,
): Promise<{ named: boolean; encoding: ContentEncoding } | null> {
  const row = await db.first<{ refs: number; encoding: ContentEncoding }>(
    "SELECT refs, encoding FROM contents WHERE key = ?",
    [key],
  );
  return row === null ? null : { named: row.refs > 0, encoding: row.encoding };
}

/**
 * Statements that store some chunks of a large content ahead of the write that takes it up. Whoever writes the same
 * content at the same time writes the same chunks. With them goes the row that they belong to, so that the sweep finds
 * them, but not while they are being written.
 * @param chunks encoded, the first of them in the place `from`
 * @param now milliseconds
 */
export function storeChunks(
  { key, size, encoding }: HashedContent,
  from: number,
  chunks: readonly Uint8Array[],
  now: number,
): Statement[] {
  return [
    {
      sql: `INSERT INTO contents (key, refs, size, encoding, place, created_at) VALUES (?, 0, ?, ?, 'chunks', ?)
        ON CONFLICT (key) DO UPDATE SET created_at = excluded.created_at WHERE refs = 0`,
      args: [key, size, encoding, now],
    },
    ...chunks.map((bytes, at) => ({
      // Where the content is in the object store by now, its chunks are there. Where another program has begun it in
      // another encoding, chunks of both could not be read: then the content stays without ours, and who brings it anew
      // finds how it was begun.
      sql: `INSERT INTO content_chunks (key, ord, bytes)
        SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM contents WHERE key = ?1 AND place = 'chunks' AND encoding = ?4)
        ON CONFLICT (key, ord) DO NOTHING`,
      args: [key, from + at, bytes, encoding],
    })),
  ];
}

/** Chunks removed in one write, but for those of its last content: each has some sixty pages to give back. */
export const MAX_CHUNKS_PER_WRITE = 128;

interface Unused {
  key: ArrayBuffer;
  size: number;
  place: "row" | "chunks";
}

/**
 * Removes contents that nobody names, and has named for `UNUSED_KEPT_MS`, in one write. One that is taken up meanwhile
 * stays: a condition of the very statement that removes it. Those in the object store are left to whoever empties that.
 * @param now milliseconds
 * @param limit contents of the write at most; fewer where they are large
 * @returns whether there may be more
 */
export async function removeUnused(db: Db, now: number, limit: number): Promise<boolean> {
  const before = now - UNUSED_KEPT_MS;
  const found = await db.all<Unused>(
    `SELECT key, size, place FROM contents WHERE refs = 0 AND created_at < ? AND place <> 'object'
      ORDER BY created_at LIMIT ?`,
    [before, limit],
  );
  let chunks = 0;
  const going = found.filter(({ size, place }) => {
    if (chunks >= MAX_CHUNKS_PER_WRITE) return false;
    chunks += place === "chunks" ? chunkCount(size) : 0;
    return true;
  });
  await db.write(going.flatMap(({ key, place }) => removal(new Uint8Array(key), place, before)));
  return found.length === limit || going.length < found.length;
}

function removal(key: Uint8Array, place: Unused["place"], before: number): Statement[] {
  const row: Statement = {
    sql: "DELETE FROM contents WHERE key = ? AND refs = 0 AND created_at < ? AND place <> 'object'",
    args: [key, before],
  };
  if (place === "row") return [row];
  const chunks: Statement = {
    sql: `DELETE FROM content_chunks WHERE key = ?1
      AND NOT EXISTS (SELECT 1 FROM contents WHERE key = ?1)`,
    args: [key],
  };
  return [row, chunks];
}
