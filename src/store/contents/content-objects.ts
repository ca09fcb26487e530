import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import type { Db, Statement } from "../engine/client.ts";
import { chunkCount } from "./content-bytes.ts";
import { UNUSED_KEPT_MS } from "./contents.ts";
import type { MemoryBudget } from "./memory-budget.ts";

/** A content in the database that should move to the object store. */
export interface MovableContent {
  id: number;
  key: Uint8Array;
  /** Plain bytes: an upper bound of the memory needed to move it. */
  size: number;
  storedIn: "row" | "chunks";
}

/**
 * Lists contents that are large enough for an object, are referenced, and were stored before a time (milliseconds), after an
 * id. The condition repeats the words of the index `contents_movable`, otherwise SQLite could not use it.
 */
export async function movableContents(
  db: Db,
  after: number,
  before: number,
  limit: number,
): Promise<MovableContent[]> {
  const rows = await db.all<Omit<MovableContent, "key"> & { key: ArrayBuffer }>(
    `SELECT id, key, size, stored_in AS storedIn FROM contents INDEXED BY contents_movable
      WHERE (stored_in = 'chunks' OR (stored_in = 'row' AND length(bytes) >= 16384)) AND id > ?
        AND refs > 0 AND created_at < ?
      ORDER BY id LIMIT ?`,
    [after, before, limit],
  );
  return rows.map(({ key, ...row }) => ({ ...row, key: new Uint8Array(key) }));
}

/** Reads a content as stored, with its chunks joined. Returns null if it is no longer complete. */
export async function storedBytes(
  db: Db,
  { key, size, storedIn }: MovableContent,
  budget: MemoryBudget,
): Promise<Uint8Array<ArrayBuffer> | null> {
  if (storedIn === "chunks") return storedChunks(db, key, size, budget);
  const row = await db.first<{ bytes: ArrayBuffer | null }>("SELECT bytes FROM contents WHERE key = ?", [
    key,
  ]);
  return row?.bytes == null ? null : new Uint8Array(row.bytes);
}

async function storedChunks(
  db: Db,
  key: Uint8Array,
  size: number,
  budget: MemoryBudget,
): Promise<Uint8Array<ArrayBuffer> | null> {
  return budget.hold(size, async () => {
    const chunks: Uint8Array[] = [];
    while (chunks.length < chunkCount(size)) {
      const row = await db.first<{ bytes: ArrayBuffer }>(
        "SELECT bytes FROM content_chunks WHERE key = ? AND ord = ?",
        [key, chunks.length],
      );
      // The sweep or another process has removed it, so the chunks read so far are not the content.
      if (row === null) return null;
      chunks.push(new Uint8Array(row.bytes));
      // Reads of a database file do not yield by themselves.
      await yieldToEventLoop();
    }
    return Buffer.concat(chunks);
  });
}

/** Records an object before its upload, so that the sweep finds it if the upload is never completed. */
export function noteStray(object: string, now: number): Statement {
  return { sql: "INSERT INTO stray_objects (object, since) VALUES (?, ?)", args: [object, now] };
}

/** Returns the statements that move a content to its uploaded object. If either was given up, they change nothing. */
export function moveToObject({ key, storedIn }: MovableContent, object: string): Statement[] {
  const placed = "EXISTS (SELECT 1 FROM contents WHERE key = ? AND object = ?)";
  return [
    {
      sql: `UPDATE contents SET stored_in = 'object', object = ?1, bytes = NULL WHERE key = ?2 AND stored_in = ?3
        AND EXISTS (SELECT 1 FROM stray_objects WHERE object = ?1 AND doomed = 0)`,
      args: [object, key, storedIn],
    },
    {
      sql: `DELETE FROM content_chunks WHERE key = ? AND ${placed}`,
      args: [key, key, object],
    },
    {
      sql: `DELETE FROM stray_objects WHERE object = ? AND ${placed}`,
      args: [object, key, object],
    },
  ];
}

/** Marks an object that no content names for removal. No content can name it afterwards. */
export function doomStray(object: string): Statement {
  return { sql: "UPDATE stray_objects SET doomed = 1 WHERE object = ?", args: [object] };
}

/** Lists objects whose upload began before a time (milliseconds) and was never completed. */
export async function lostStrays(db: Db, before: number, limit: number): Promise<string[]> {
  const rows = await db.all<{ object: string }>(
    "SELECT object FROM stray_objects WHERE doomed = 0 AND since < ? LIMIT ?",
    [before, limit],
  );
  return rows.map(({ object }) => object);
}

/**
 * Removes contents that are objects and were not referenced for `UNUSED_KEPT_MS`, and marks their objects for removal in the
 * same write. So no content names an object that is being removed. If identical bytes are stored again, they get a
 * new object.
 * @returns how many were found
 */
export async function dropUnusedObjects(db: Db, now: number, limit: number): Promise<number> {
  const before = now - UNUSED_KEPT_MS;
  const found = await db.all<{ key: ArrayBuffer }>(
    `SELECT key FROM contents WHERE refs = 0 AND created_at < ? AND stored_in = 'object' ORDER BY created_at LIMIT ?`,
    [before, limit],
  );
  const unused = "key = ? AND refs = 0 AND created_at < ? AND stored_in = 'object'";
  await db.write(
    found.flatMap(({ key }) => {
      const args = [new Uint8Array(key), before];
      return [
        {
          sql: `INSERT INTO stray_objects (object, since, doomed)
            SELECT object, created_at, 1 FROM contents WHERE ${unused} AND object IS NOT NULL`,
          args,
        },
        { sql: `DELETE FROM contents WHERE ${unused}`, args },
      ];
    }),
  );
  return found.length;
}

/** An object marked for removal. It is also the cursor of `doomedObjects`. */
export interface DoomedObject {
  object: string;
  since: number;
}

/** Lists objects marked for removal after a cursor, oldest first. */
export function doomedObjects(db: Db, after: DoomedObject | null, limit: number): Promise<DoomedObject[]> {
  return db.all<DoomedObject>(
    `SELECT object, since FROM stray_objects
      WHERE doomed = 1 AND (since, object) > (?, ?) ORDER BY since, object LIMIT ?`,
    [after?.since ?? -1, after?.object ?? "", limit],
  );
}

/** Deletes the records of removed objects. */
export function forgetStrays(objects: readonly string[]): Statement {
  return {
    sql: "DELETE FROM stray_objects WHERE doomed = 1 AND object IN (SELECT value FROM json_each(?))",
    args: [JSON.stringify(objects)],
  };
}
