import type { Db, Guard, Statement } from "../engine/client.ts";
import { requireGuard } from "../engine/guards.ts";
import type { RowPlace } from "../engine/place.ts";

/** The outcome of a row. */
export type Outcome = "created" | "updated" | "unchanged" | "failed";

/** A row of a part that waits: its number in the file, its address, its values, and why it fails. One of the last two is null. */
export type WaitingRow = readonly [row: number, email: string, values: unknown, error: string | null];
/** A row of a committed part. */
export type DoneRow = readonly [row: number, email: string, outcome: Outcome, error: string | null];

/** The place of a part, and the version of its content. */
export interface PartPlace {
  importId: string;
  ord: number;
  version: number;
}

/**
 * Stores a part of an upload. Returns false if the upload was given up in the meantime.
 * @param within statements that undo the write over the project's stored octets
 */
export async function insertPart(
  db: Db,
  { senderId, importId, ord }: { senderId: string; importId: string; ord: number },
  rows: readonly WaitingRow[],
  now: number,
  within: readonly Statement[],
): Promise<boolean> {
  const [touched] = await db.write([
    {
      sql: "UPDATE imports SET touched_at = ? WHERE id = ? AND status = 'uploading'",
      args: [now, importId],
    },
    {
      sql: `INSERT INTO import_parts (import_id, ord, sender_id, content)
        SELECT id, ?, sender_id, ? FROM imports WHERE id = ? AND sender_id = ? AND status = 'uploading'`,
      args: [ord, JSON.stringify(rows), importId, senderId],
    },
    ...within,
  ]);
  return touched?.changes === 1;
}

/** Returns a part of an import that waits; null if it is gone. */
export async function waitingPart(
  db: Db,
  importId: string,
  ord: number,
): Promise<{ place: PartPlace; rows: WaitingRow[] } | null> {
  const row = await db.first<{ content: string; version: number }>(
    "SELECT content, version FROM import_parts WHERE import_id = ? AND ord = ?",
    [importId, ord],
  );
  if (row === null) return null;
  return { place: { importId, ord, version: row.version }, rows: JSON.parse(row.content) };
}

/**
 * Returns the statements that put its results in the place of a part's rows. They break the guard `changed_since_read` if
 * another process has committed the part, or an erasure has changed it.
 */
export function settlePart({ importId, ord, version }: PartPlace, rows: readonly DoneRow[]): Statement[] {
  const waits: Guard = {
    sql: `EXISTS (SELECT 1 FROM imports i JOIN import_parts p ON p.import_id = i.id AND p.ord = i.done_parts
      WHERE i.id = ? AND i.status = 'running' AND p.ord = ? AND p.version = ?)`,
    args: [importId, ord, version],
  };
  return [
    requireGuard("changed_since_read", waits),
    {
      sql: "UPDATE import_parts SET content = ? WHERE import_id = ? AND ord = ?",
      args: [JSON.stringify(rows), importId, ord],
    },
  ];
}

/** Returns the results of at most `limit` committed parts from a place on, by part. */
export async function doneParts(
  db: Db,
  senderId: string,
  importId: string,
  from: number,
  limit: number,
): Promise<{ ord: number; rows: DoneRow[] }[]> {
  const parts = await db.all<{ ord: number; content: string }>(
    `SELECT p.ord, p.content FROM imports i JOIN import_parts p ON p.import_id = i.id AND p.ord < i.done_parts
      WHERE i.id = ? AND i.sender_id = ? AND p.ord >= ? ORDER BY p.ord LIMIT ?`,
    [importId, senderId, from, limit],
  );
  return parts.map(({ ord, content }) => ({ ord, rows: JSON.parse(content) }));
}

/** SQL of whether a row of a part is of the address `?1`: the row's is the same, or has it in angle brackets. */
const IS_OF = "(lower(r.value ->> 1) = ?1 OR instr(lower(r.value ->> 1), '<' || ?1 || '>'))";

/** Returns the rows of an address in the project's next parts, and the place of the last part; null: there are no more. */
export async function rowsNaming(
  db: Db,
  senderId: string,
  key: string,
  after: RowPlace,
  limit: number,
): Promise<{ found: { importId: string; ord: number; rows: (WaitingRow | DoneRow)[] }[]; next: RowPlace }> {
  const parts = await db.all<{ import_id: string; ord: number; named: string }>(
    `SELECT import_id, ord, CASE WHEN instr(lower(content), ?1) THEN
        (SELECT json_group_array(json(r.value)) FROM json_each(content) r WHERE ${IS_OF}) ELSE '[]' END AS named
      FROM import_parts WHERE sender_id = ?2 AND (import_id, ord) > (?3, ?4) ORDER BY import_id, ord LIMIT ?5`,
    [key, senderId, ...(after ?? ["", 0]), limit],
  );
  const last = parts.length < limit ? undefined : parts.at(-1);
  return {
    found: parts.flatMap(({ import_id: importId, ord, named }) =>
      named === "[]" ? [] : [{ importId, ord, rows: JSON.parse(named) }],
    ),
    next: last === undefined ? null : [last.import_id, last.ord],
  };
}

/** Takes the rows of an address out of the project's next parts, and returns the place of the last. */
export async function eraseFromParts(
  db: Db,
  senderId: string,
  key: string,
  after: RowPlace,
  limit: number,
): Promise<RowPlace> {
  const { found, next } = await rowsNaming(db, senderId, key, after, limit);
  if (found.length > 0)
    await db.write(
      found.map(({ importId, ord }) => ({
        sql: `UPDATE import_parts SET version = version + 1,
            content = (SELECT json_group_array(json(r.value)) FROM json_each(content) r WHERE NOT ${IS_OF})
          WHERE import_id = ?2 AND ord = ?3`,
        args: [key, importId, ord],
      })),
    );
  return next;
}
