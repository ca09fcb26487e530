import { turn } from "../../core/turn.ts";
import type { Db, Statement } from "../engine/client.ts";
import { chunkCount } from "./content-bytes.ts";
import { UNUSED_KEPT_MS } from "./contents.ts";

/** A content in the database that is to be an object. */
export interface MovableContent {
  id: number;
  key: Uint8Array;
  /** Octets as read: as many as are held to move it, or fewer. */
  size: number;
  place: "row" | "chunks";
}

/**
 * Contents that are worth an object, are named, and were stored before a time (milliseconds), from behind an id on. What
 * is worth one is said in the words of the index `contents_movable`, or SQLite could not use it.
 */
export async function movableContents(
  db: Db,
  after: number,
  before: number,
  limit: number,
): Promise<MovableContent[]> {
  const rows = await db.all<Omit<MovableContent, "key"> & { key: ArrayBuffer }>(
    `SELECT id, key, size, place FROM contents INDEXED BY contents_movable
      WHERE (place = 'chunks' OR (place = 'row' AND length(bytes) >= 16384)) AND id > ?
        AND refs > 0 AND created_at < ?
      ORDER BY id LIMIT ?`,
    [after, before, limit],
  );
  return rows.map(({ key, ...row }) => ({ ...row, key: new Uint8Array(key) }));
}

/** All bytes of a content as stored, its chunks one after another; null where it is not there as a whole any more. */
export async function storedBytes(
  db: Db,
  { key, size, place }: MovableContent,
): Promise<Uint8Array<ArrayBuffer> | null> {
  if (place === "chunks") return storedChunks(db, key, chunkCount(size));
  const row = await db.first<{ bytes: ArrayBuffer | null }>("SELECT bytes FROM contents WHERE key = ?", [
    key,
  ]);
  return row?.bytes == null ? null : new Uint8Array(row.bytes);
}

async function storedChunks(db: Db, key: Uint8Array, count: number): Promise<Uint8Array<ArrayBuffer> | null> {
  const chunks: Uint8Array[] = [];
  while (chunks.length < count) {
    const row = await db.first<{ bytes: ArrayBuffer }>(
      "SELECT bytes FROM content_chunks WHERE key = ? AND ord = ?",
      [key, chunks.length],
    );
    // Swept or moved by another process meanwhile: the pieces read so far must not pass for the content.
    if (row === null) return null;
    chunks.push(new Uint8Array(row.bytes));
    // Reading a file takes no turn of the event loop by itself.
    await turn();
  }
  return Buffer.concat(chunks);
}

/** Notes an object that is going to be put: should nothing come of it, it is found again. */
export function noteStray(object: string, now: number): Statement {
  return { sql: "INSERT INTO stray_objects (object, since) VALUES (?, ?)", args: [object, now] };
}

/** Statements that let a content be the object that was put; they change nothing where it, or the object, is given up. */
export function placeInObject({ key, place }: MovableContent, object: string): Statement[] {
  const placed = "EXISTS (SELECT 1 FROM contents WHERE key = ? AND object = ?)";
  return [
    {
      sql: `UPDATE contents SET place = 'object', object = ?1, bytes = NULL WHERE key = ?2 AND place = ?3
        AND EXISTS (SELECT 1 FROM stray_objects WHERE object = ?1 AND doomed = 0)`,
      args: [object, key, place],
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

/** Gives up an object that no content names: from now on none will. */
export function doomStray(object: string): Statement {
  return { sql: "UPDATE stray_objects SET doomed = 1 WHERE object = ?", args: [object] };
}

/** Objects that were going to be put before a time (milliseconds), by a process that has died since. */
export async function lostStrays(db: Db, before: number, limit: number): Promise<string[]> {
  const rows = await db.all<{ object: string }>(
    "SELECT object FROM stray_objects WHERE doomed = 0 AND since < ? LIMIT ?",
    [before, limit],
  );
  return rows.map(({ object }) => object);
}

/**
 * Removes contents that are objects and that nobody has named for `UNUSED_KEPT_MS`; their objects are doomed in the same
 * write. So no content names an object that is being removed, and one that takes up the same bytes is a new one.
 * @returns how many were found
 */
export async function dropUnusedObjects(db: Db, now: number, limit: number): Promise<number> {
  const before = now - UNUSED_KEPT_MS;
  const found = await db.all<{ key: ArrayBuffer }>(
    `SELECT key FROM contents WHERE refs = 0 AND created_at < ? AND place = 'object' ORDER BY created_at LIMIT ?`,
    [before, limit],
  );
  const unused = "key = ? AND refs = 0 AND created_at < ? AND place = 'object'";
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

/** An object that is to be removed, and the place in the order of all of them where a later look goes on. */
export interface DoomedObject {
  object: string;
  since: number;
}

/** Objects that are to be removed, longest doomed first, from behind `after` on. */
export function doomedObjects(db: Db, after: DoomedObject | null, limit: number): Promise<DoomedObject[]> {
  return db.all<DoomedObject>(
    `SELECT object, since FROM stray_objects
      WHERE doomed = 1 AND (since, object) > (?, ?) ORDER BY since, object LIMIT ?`,
    [after?.since ?? -1, after?.object ?? "", limit],
  );
}

/** Forgets objects that are removed. */
export function forgetStrays(objects: readonly string[]): Statement {
  return {
    sql: "DELETE FROM stray_objects WHERE doomed = 1 AND object IN (SELECT value FROM json_each(?))",
    args: [JSON.stringify(objects)],
  };
}
