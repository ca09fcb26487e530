import { idCeiling } from "../../core/ids.ts";
import type { Db, Guard, Statement } from "../engine/client.ts";
import { type EntityOf, plain, table } from "../engine/columns.ts";
import { requireGuard, requireRoom } from "../engine/guards.ts";
import type { Place } from "../engine/place.ts";

/** The list that a file is imported into. */
export type ImportKind = "contacts" | "suppressions";

const COLUMNS = {
  id: plain<string>("id"),
  senderId: plain<string>("sender_id"),
  kind: plain<ImportKind>("kind"),
  /** `uploading` until the file is whole; `dropped`: its upload failed. */
  status: plain<"uploading" | "running" | "done" | "dropped">("status"),
  parts: plain<number>("parts"),
  /** Parts that are committed, the first ones. */
  doneParts: plain<number>("done_parts"),
  rows: plain<number>("row_count"),
  created: plain<number>("created"),
  updated: plain<number>("updated"),
  unchanged: plain<number>("unchanged"),
  failed: plain<number>("failed"),
  /** When the last part came or was committed. */
  touchedAt: plain<number>("touched_at"),
  createdAt: plain<number>("created_at"),
  endedAt: plain<number | null>("ended_at"),
};

/** A file that a project imports. Times in milliseconds. */
export type Import = EntityOf<typeof COLUMNS>;
/** Numbers of rows by what became of them. */
export type ImportCounts = Pick<Import, "created" | "updated" | "unchanged" | "failed">;

/** The imports of a list. */
export interface ImportList {
  senderId: string;
  kind: ImportKind;
  statuses: readonly ("running" | "done")[];
}

const IMPORTS = table<Import>("imports", COLUMNS);
const IN_PROGRESS = "status IN ('uploading', 'running')";
/** The condition of the partial index, so that chores do not read the imports whose results are kept. */
const NOT_DONE = "imports INDEXED BY imports_open WHERE status <> 'done'";

/** Returns the statements that begin an import. They break the guard `too_many_records` if too many are in progress. */
export function beginImport(begun: Import, maxInProgress: number): Statement[] {
  return [
    requireRoom(`imports WHERE sender_id = ? AND ${IN_PROGRESS}`, begun.senderId, maxInProgress),
    IMPORTS.insert(begun),
  ];
}

/** Returns the statement that ends the upload of a file. If the upload was given up in the meantime, it breaks `changed_since_read`. */
export function startImport(id: string, rows: number, parts: number, now: number): Statement[] {
  const guard: Guard = {
    sql: "EXISTS (SELECT 1 FROM imports WHERE id = ? AND status = 'uploading')",
    args: [id],
  };
  return [
    requireGuard("changed_since_read", guard),
    {
      sql: "UPDATE imports SET status = 'running', row_count = ?, parts = ?, touched_at = ? WHERE id = ?",
      args: [rows, parts, now, id],
    },
  ];
}

/** Returns the statement that drops an import whose upload failed. A chore removes what came of it. */
export function dropImport(id: string): Statement {
  return { sql: "UPDATE imports SET status = 'dropped' WHERE id = ? AND status = 'uploading'", args: [id] };
}

/** Returns the project's import of that id, once its upload is whole; null if there is none. */
export function getImport(db: Db, senderId: string, id: string): Promise<Import | null> {
  return IMPORTS.first(db, "WHERE sender_id = ? AND id = ? AND status IN ('running', 'done')", [
    senderId,
    id,
  ]);
}

/** Returns at most `take` imports of a kind into the project whose upload is whole, newest first, at a place. */
export function listImports(
  db: Db,
  { senderId, kind, statuses }: ImportList,
  place: Place,
  take: number,
): Promise<Import[]> {
  return IMPORTS.page(db, {
    where: "sender_id = ? AND kind = ? AND status IN (SELECT value FROM json_each(?))",
    args: [senderId, kind, JSON.stringify(statuses)],
    place,
    ceiling: idCeiling("imp"),
    take,
  });
}

/** Returns the oldest import in progress of each project, of at most `limit` projects that are not deleted. */
export function nextImports(db: Db, limit: number): Promise<Import[]> {
  return IMPORTS.all(
    db,
    `WHERE id IN (SELECT min(i.id) FROM (SELECT * FROM ${NOT_DONE} AND status = 'running') i
      JOIN senders p ON p.id = i.sender_id AND p.deleted_at IS NULL
      GROUP BY i.sender_id ORDER BY min(i.touched_at) LIMIT ?)`,
    [limit],
  );
}

/** Returns the statement that counts the rows of a committed part, and ends the import after the last one. */
export function countPart(id: string, counts: ImportCounts, now: number): Statement {
  return {
    sql: `UPDATE imports SET done_parts = done_parts + 1, created = created + ?, updated = updated + ?,
        unchanged = unchanged + ?, failed = failed + ?, touched_at = ?,
        status = CASE WHEN done_parts + 1 >= parts THEN 'done' ELSE status END,
        ended_at = CASE WHEN done_parts + 1 >= parts THEN ? END
      WHERE id = ? AND status = 'running'`,
    args: [counts.created, counts.updated, counts.unchanged, counts.failed, now, now, id],
  };
}

/**
 * Returns an import to remove, of any project: dropped, uploading without progress since `quietSince`, or begun before
 * `before` (milliseconds). Null if there is none.
 */
export async function oldImport(db: Db, quietSince: number, before: number): Promise<string | null> {
  const row = await db.first<{ id: string }>(
    `SELECT id FROM ${NOT_DONE} AND (status = 'dropped' OR (status = 'uploading' AND touched_at < ?))
      UNION ALL SELECT id FROM imports WHERE id = (SELECT min(id) FROM imports) AND created_at < ? LIMIT 1`,
    [quietSince, before],
  );
  return row?.id ?? null;
}

/** Removes at most `limit` parts of an import, or the import itself if it has none. Returns true if there may be more parts. */
export async function removeImport(db: Db, id: string, limit: number): Promise<boolean> {
  const [, parts] = await db.write([
    // From now on, nothing more is stored or committed.
    { sql: "UPDATE imports SET status = 'dropped' WHERE id = ? AND status <> 'dropped'", args: [id] },
    {
      sql: `DELETE FROM import_parts WHERE import_id = ?1
        AND ord IN (SELECT ord FROM import_parts WHERE import_id = ?1 LIMIT ?2)`,
      args: [id, limit],
    },
  ]);
  if ((parts?.changes ?? 0) > 0) return true;
  await db.write([
    {
      sql: "DELETE FROM imports WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM import_parts WHERE import_id = ?1)",
      args: [id],
    },
  ]);
  return false;
}
