import { HOUR_MS } from "../../core/time/units.ts";
import { chunkCount, type HashedContent, type NewContent } from "./content-bytes.ts";
import type { ContentEncoding } from "../sql/content-values.ts";
import type { Db, Guard, Statement } from "../engine/client.ts";
import { rowsStatement, rowsText } from "../sql/rows-text.ts";

/**
 * Time that a content without references is kept, counted from its last chunk or its last reference. A writer that has
 * found it, or has stored it ahead, commits long before.
 */
export const UNUSED_KEPT_MS = HOUR_MS;

/**
 * Returns the time to give to contents that must go now, because their owner wanted that. A writer that has just found one is
 * answered 503 and stores it again.
 */
export function goneAt(now: number): number {
  return now - UNUSED_KEPT_MS - 1;
}

/** The references of a content that was stored ahead; NULL if it does not exist with all its chunks. */
const REFS_AHEAD = `(SELECT refs FROM contents WHERE key = ?1
  AND (stored_in <> 'chunks' OR (SELECT count(*) FROM content_chunks WHERE key = ?1) = ?6))`;

const COLUMNS_STORED = "key, refs, size, encoding, stored_in, created_at, bytes, sender_id";
const OR_ADD_REFERENCE = " ON CONFLICT (key) DO UPDATE SET refs = refs + 1";

/** Values of a content that is stored in its row, as most are. */
const IN_ROW = "?1, 1, ?2, ?3, ?4, ?5, ?6, ?7";
const STORE = rowsText("contents", COLUMNS_STORED, `(${IN_ROW})`, { after: OR_ADD_REFERENCE });
/** Values of a content that was stored ahead. If it is incomplete, the NULL for `refs` undoes the write. */
const AHEAD = `?1, ${REFS_AHEAD}, ?2, ?3, ?4, ?5, NULL, ?7`;
const STORE_AHEAD = rowsText("contents", COLUMNS_STORED, `(${AHEAD})`, {
  after: OR_ADD_REFERENCE,
  repeats: false,
});

function guardedText(ahead: boolean, guard: Guard): string {
  const values = ahead ? AHEAD : IN_ROW;
  return `INSERT INTO contents (${COLUMNS_STORED}) SELECT ${values} WHERE ${guard.sql}${OR_ADD_REFERENCE}`;
}

/**
 * Returns the statement that adds a reference to a content, and stores the content if it is new. A content that was stored
 * ahead must be complete: if the sweep has removed it, the write is undone with the reason `content_gone`.
 * @param now milliseconds
 * @param guard a condition with `?` alone for its parameters; if it does not hold, the statement does nothing
 */
export function storeContent(content: NewContent, now: number, guard?: Guard): Statement {
  const { key, size, encoding, bytes, senderId = "" } = content;
  const ahead = bytes === null;
  const storedIn = ahead ? "chunks" : "row";
  const args = [key, size, encoding, storedIn, now, ahead ? chunkCount(size) : bytes, senderId];
  return guard === undefined
    ? rowsStatement(ahead ? STORE_AHEAD : STORE, args)
    : { sql: guardedText(ahead, guard), args: [...args, ...guard.args] };
}

/** Returns true if the content is stored in chunks before the write that refers to it. */
export function isStoredAhead(content: NewContent): content is HashedContent {
  return content.bytes === null;
}

/** Returns the condition that a large content is complete, for writes that must succeed without it. */
export function completeGuard({ key, size }: HashedContent): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM contents WHERE key = ?
      AND (stored_in <> 'chunks' OR (SELECT count(*) FROM content_chunks WHERE key = ?) = ?))`,
    args: [key, key, chunkCount(size)],
  };
}

/** Returns how a content is stored, and if it has references; null if it is not stored. */
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
 * Returns the statements that store chunks of a large content before the write that refers to it. Two writers of the same
 * content store the same chunks. The content's row is stored with the first chunks, so that the sweep finds them if the
 * write never comes; each call renews its time.
 * @param from index of the first chunk
 * @param chunks encoded
 * @param now milliseconds
 */
export function storeChunks(
  { key, size, encoding, senderId = "" }: HashedContent,
  from: number,
  chunks: readonly Uint8Array[],
  now: number,
): Statement[] {
  return [
    {
      sql: `INSERT INTO contents (key, refs, size, encoding, stored_in, created_at, sender_id)
        VALUES (?, 0, ?, ?, 'chunks', ?, ?)
        ON CONFLICT (key) DO UPDATE SET created_at = excluded.created_at WHERE refs = 0`,
      args: [key, size, encoding, now, senderId],
    },
    ...chunks.map((bytes, at) => ({
      // If the content has moved to the object store, its chunks are there. If another process has begun it in another
      // encoding, a mix could not be read: these chunks are dropped, and a retry finds the encoding that was begun.
      sql: `INSERT INTO content_chunks (key, ord, bytes)
        SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM contents WHERE key = ?1 AND stored_in = 'chunks' AND encoding = ?4)
        ON CONFLICT (key, ord) DO NOTHING`,
      args: [key, from + at, bytes, encoding],
    })),
  ];
}

/** Chunks after which a write removes no further content. Each chunk frees about sixty pages. */
export const MAX_CHUNKS_PER_WRITE = 128;

interface Unused {
  key: ArrayBuffer;
  size: number;
  storedIn: "row" | "chunks";
}

/**
 * Removes contents without references for `UNUSED_KEPT_MS`, in one write. A content that gets a reference just before stays,
 * because the statement checks again. `dropUnusedObjects` removes those in the object store.
 * @param now milliseconds
 * @param limit contents of the write at most; fewer if they are large
 * @returns true if there may be more
 */
export async function removeUnused(db: Db, now: number, limit: number): Promise<boolean> {
  const before = now - UNUSED_KEPT_MS;
  const found = await db.all<Unused>(
    `SELECT key, size, stored_in AS storedIn FROM contents WHERE refs = 0 AND created_at < ? AND stored_in <> 'object'
      ORDER BY created_at LIMIT ?`,
    [before, limit],
  );
  let chunks = 0;
  const going = found.filter(({ size, storedIn }) => {
    if (chunks >= MAX_CHUNKS_PER_WRITE) return false;
    chunks += storedIn === "chunks" ? chunkCount(size) : 0;
    return true;
  });
  await db.write(going.flatMap(({ key, storedIn }) => removal(new Uint8Array(key), storedIn, before)));
  return found.length === limit || going.length < found.length;
}

function removal(key: Uint8Array, storedIn: Unused["storedIn"], before: number): Statement[] {
  const row: Statement = {
    sql: "DELETE FROM contents WHERE key = ? AND refs = 0 AND created_at < ? AND stored_in <> 'object'",
    args: [key, before],
  };
  if (storedIn === "row") return [row];
  const chunks: Statement = {
    sql: `DELETE FROM content_chunks WHERE key = ?1
      AND NOT EXISTS (SELECT 1 FROM contents WHERE key = ?1)`,
    args: [key],
  };
  return [row, chunks];
}
