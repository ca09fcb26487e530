import type { Db } from "../engine/client.ts";

/** Tables of what contacts may have values of, with the column of the values and how a row names its own there. */
const KINDS = [
  { table: "contact_properties", column: "properties", name: "name" },
  { table: "topics", column: "topics", name: "id" },
] as const;

interface MarkedRow {
  id: string;
  sender_id: string;
  name: string;
  walked_to: string;
}

/**
 * Removes the values of a deleted property, or the choices of a deleted topic, from the next contacts. After the last contact, it
 * removes the property or topic itself. Returns false if none was deleted before the time.
 * @param before milliseconds
 * @param rows contacts of one write
 */
export async function removeValues(db: Db, before: number, rows: number): Promise<boolean> {
  for (const { table, column, name } of KINDS) {
    const marked = await db.first<MarkedRow>(
      `SELECT id, sender_id, ${name} AS name, walked_to FROM ${table} INDEXED BY ${table}_deleted
        WHERE deleted_at IS NOT NULL AND deleted_at <= ? ORDER BY deleted_at LIMIT 1`,
      [before],
    );
    if (marked === null) continue;
    await removeNext(db, table, column, marked, rows);
    return true;
  }
  return false;
}

async function removeNext(
  db: Db,
  table: string,
  column: string,
  { id, sender_id: senderId, name, walked_to: from }: MarkedRow,
  rows: number,
): Promise<void> {
  const next = await db.all<{ id: string }>(
    "SELECT id FROM contacts WHERE sender_id = ? AND id > ? ORDER BY id LIMIT ?",
    [senderId, from, rows],
  );
  const last = next.at(-1)?.id;
  await db.write([
    {
      sql: `UPDATE contacts SET ${column} = json_remove(${column}, ?1)
        WHERE id IN (SELECT value FROM json_each(?2)) AND json_type(${column}, ?1) IS NOT NULL`,
      args: [`$."${name}"`, JSON.stringify(next.map((row) => row.id))],
    },
    last === undefined
      ? { sql: `DELETE FROM ${table} WHERE id = ?`, args: [id] }
      : { sql: `UPDATE ${table} SET walked_to = ? WHERE id = ?`, args: [last, id] },
  ]);
}
