import { noteChange } from "../engine/audit-triggers.ts";
import type { Db, Statement } from "../engine/client.ts";
import { type Thread, THREADS } from "./threads.ts";

/** Returns the statement by which a rule puts a thread away, after the message that came to it. */
export function fileThread(
  senderId: string,
  id: string,
  { archive, markRead }: { archive: boolean; markRead: boolean },
): Statement[] {
  if (!archive && !markRead) return [];
  return [
    {
      sql: "UPDATE threads SET archived = max(archived, ?), unread = min(unread, ?) WHERE id = ? AND sender_id = ?",
      args: [Number(archive), Number(!markRead), id, senderId],
    },
  ];
}

/** The changes that a client may make to a thread. A field that is left out stays as it is. */
export interface ThreadChanges {
  read?: boolean | undefined;
  archived?: boolean | undefined;
}

/**
 * Marks a thread of the project as read or unread, archives it or brings it back.
 * @returns the thread afterwards; null if the project has none with that id
 */
export async function updateThread(
  db: Db,
  senderId: string,
  id: string,
  { read, archived }: ThreadChanges,
): Promise<Thread | null> {
  const [unread, put] = [
    read === undefined ? null : Number(!read),
    archived === undefined ? null : Number(archived),
  ];
  const sql = `UPDATE threads SET unread = COALESCE(?, unread), archived = COALESCE(?, archived)
    WHERE id = ? AND sender_id = ? RETURNING ${THREADS.columns}`;
  const json = (one: string, other: string, column: string) => `iif(row.${column}, '${one}', '${other}')`;
  const changes = {
    ...(read === undefined ? {} : { read: [json("false", "true", "unread"), `${read}`] as const }),
    ...(archived === undefined
      ? {}
      : { archived: [json("true", "false", "archived"), `${archived}`] as const }),
  };
  const noted = Object.keys(changes).length > 0;
  const written = await db.write([
    ...(noted ? [noteChange({ table: "threads", verb: "update", senderId, id, changes })] : []),
    { sql, args: [unread, put, id, senderId] },
  ]);
  return THREADS.returned(written.at(-1));
}
